"""Ranks that would compute different things are refused with the table of what differs."""

from __future__ import annotations

import platform
from typing import Any

import pytest
import torch

from airflow_provider_sparkddp.runtime.barrier.versions import NEEDED, SAME, require_same, unfit_worker, versions
from tests.support.refusals import refused

HOSTS = ["host-a", "host-b", "host-c"]


def test_what_is_here_is_told_as_it_is() -> None:
    found = versions()
    assert found["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert platform.python_version().startswith(found["python"])
    assert set(NEEDED) <= set(found)
    require_same(HOSTS, [found, found, dict(found)])


@pytest.mark.parametrize("name", SAME)
def test_another_version_is_refused_with_every_host_s(name: str) -> None:
    other = versions() | {name: "0.0.1"}
    with refused(
        "SDDP-311", f"differ in {name}", f"host-b: {name} 0.0.1", f"host-a: {name} {versions()[name]}", "archives"
    ):
        require_same(HOSTS, [versions(), other, versions()])


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_package_is_refused_by_name(name: str) -> None:
    without = {key: value for key, value in versions().items() if key != name}
    with refused("SDDP-311", f"lack {name}", f"host-c: {name} missing"):
        require_same(HOSTS, [versions(), versions(), without])
    with refused("SDDP-311", f"lack {name}"):
        require_same(HOSTS[:1], [without])


@pytest.mark.parametrize("differs", [{"numpy": "1.0"}, {"pyarrow": "1.0"}, {"safetensors": "0.1"}])
def test_what_may_differ_does(differs: dict[str, Any]) -> None:
    require_same(HOSTS[:2], [versions(), versions() | differs])


@pytest.mark.parametrize(
    "said",
    [
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11",
        "ModuleNotFoundError: No module named 'pyarrow'",
    ],
)
def test_a_python_worker_that_could_not_begin_is_told_in_sparks_words(said: str) -> None:
    found = unfit_worker(RuntimeError(f"Job aborted\n  Traceback:\n{said}\n\tat java"))
    assert found is not None and found.code == "SDDP-311"
    assert said in found.message and "java" not in found.message
    assert unfit_worker(RuntimeError("executor lost")) is None

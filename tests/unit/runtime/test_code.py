"""A job's code goes on the path as the job lists it, and only if it is what the job says."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_sparkddp.hooks.bundle import store, user_zips
from airflow_provider_sparkddp.runtime.code import activate
from airflow_provider_sparkddp.spec.jobs import CodeRef
from tests.support.refusals import refused


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def refs(tmp_path: Path) -> list[CodeRef]:
    for name in ("first_of_a_job", "second_of_a_job"):
        (tmp_path / f"{name}.py").write_text(f"NAME = {name!r}\n")
    zips = user_zips(["first_of_a_job.py", "second_of_a_job.py"], tmp_path)
    return [store((tmp_path / "run").as_uri(), made) for made in zips]


def test_code_comes_first_on_the_path_in_the_order_of_the_job(refs: list[CodeRef]) -> None:
    before = list(sys.path)
    local = activate(refs)
    assert sys.path == [*local, *before]
    assert [Path(path).name for path in local] == [ref.uri.rsplit("/", 1)[-1] for ref in refs]
    import first_of_a_job  # type: ignore[import-not-found]

    assert first_of_a_job.__file__.startswith(local[0])


def test_a_zip_that_is_gone_is_refused_by_its_uri(refs: list[CodeRef]) -> None:
    gone = replace(refs[0], uri=f"{refs[0].uri}.gone")
    with refused("SDDP-108", gone.uri, "is gone"):
        activate([gone])


def test_a_zip_that_was_changed_is_refused_and_not_put_on_the_path(refs: list[CodeRef]) -> None:
    before = list(sys.path)
    Path(refs[1].uri.removeprefix("file://")).write_bytes(b"something else")
    with refused("SDDP-108", refs[1].uri, "was changed"):
        activate(refs)
    assert sys.path == before

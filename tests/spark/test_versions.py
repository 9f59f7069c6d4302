"""Executors that were set up differently: real interpreters, one of which lacks torch."""

from __future__ import annotations

import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.spark.conftest import ROOT, start_session, stop_session
from tests.support.barrier import run

INSTALLED = Path(sysconfig.get_path("purelib"))
# The first Python worker of a job finds the folder and takes it away: it alone gets the other packages.
SCRIPT = """#!/bin/sh
if rmdir {turn} 2>/dev/null; then export PYTHONPATH={root}:{packages}; exec {base} -S "$@"; fi
exec {python} "$@"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pythons")


@pytest.fixture(scope="module")
def two_pythons(folder: Path) -> Iterator[Any]:
    """A session with a new interpreter for each rank."""
    python = folder / "python"
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    given = {"turn": folder / "turn", "root": ROOT, "packages": folder / "packages", "base": base}
    python.write_text(SCRIPT.format(**given, python=sys.executable))
    python.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", str(python))
        spark = start_session("local[2]", {"spark.python.use.daemon": "false", "spark.python.worker.reuse": "false"})
        yield spark
        stop_session(spark)


@pytest.fixture
def packages(folder: Path) -> Iterator[Path]:
    """The packages of one rank: all that are installed here, but torch."""
    packages = folder / "packages"
    packages.mkdir()
    for each in INSTALLED.iterdir():
        if each.name != "torch" and not each.name.startswith("torch-"):
            (packages / each.name).symlink_to(each)
    (folder / "turn").mkdir()
    yield packages
    shutil.rmtree(packages)


def test_a_rank_without_torch_is_told_beside_the_other_and_not_by_an_import(
    two_pythons: Any, packages: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        SparkDDPError, match=rf"lack torch .*: torch {re.escape(version('torch'))}.*: torch missing"
    ) as caught:
        run(two_pythons, "all_reduce", tmp_path, world_size=2)
    assert caught.value.code == "SDDP-311"
    assert "ModuleNotFoundError" not in str(caught.value)

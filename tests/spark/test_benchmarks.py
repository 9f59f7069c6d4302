"""A benchmark from the command line to its record, as `make bench ARGS=--smoke` runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cases.partition_rows import WAYS
from tests.spark.conftest import ROOT

pytestmark = pytest.mark.slow


def test_a_record_with_ratios_comes_out(tmp_path: Path) -> None:
    out, data = tmp_path / "records", tmp_path / "data"
    data.mkdir()
    command = [
        sys.executable,
        "-m",
        "benchmarks.run",
        "partition_rows",
        "--smoke",
        "--out",
        str(out),
        "--data",
        str(data),
    ]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    (record,) = out.iterdir()
    text = record.read_text()
    for way in WAYS:
        found = re.search(rf"^\| {re.escape(way)}, ratio \| ([\d.]+) \(([\d.]+)–([\d.]+)\) \|", text, re.MULTILINE)
        assert found is not None, text
        assert 0 < float(found[2]) <= float(found[1]) <= float(found[3])
    assert "| write partitions |" in text and "| Spark | 4." in text
    assert "round 1 of 1: repartition.write: " in ran.stdout
    assert list(data.iterdir()) == []

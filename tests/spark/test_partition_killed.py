"""A partition job that is killed leaves a whole manifest or none, and the next try succeeds and clears up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from airflow_provider_sparkddp.hooks.submitters.base import parent_pipe
from airflow_provider_sparkddp.runtime.jobs import partition
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.manifests import Manifest, data_uri
from tests.support import jobs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ROWS = 4000
OWNER = "dag/run/partition/-1"
# Where the job is when it is killed -> whether it has committed its manifest by then (None: it may have).
POINTS = {
    "read source": False,
    "half of the rows are written": False,
    "describe files": False,
    "publish manifest": None,
    "clean up": True,
}


def planned(folder: Path, number: int, **settings: Any) -> Job:
    """The job of a try, in the layout of a run directory."""
    made = jobs.job("partition", folder, validation=0.1, **settings)
    nonce = f"{number:012d}"
    return replace(made, nonce=nonce, directory=f"file://{folder}/partition/unmapped/{number}-{nonce}", owner=OWNER)


def kill_at(point: str, job: Job, folder: Path, started: Path) -> None:
    """Start the job's driver as a process of its own and kill it, its Java and its workers at the point."""
    path = folder / "job.json"
    path.write_text(job.to_text())
    lying = Path(job.directory.removeprefix("file://"))
    lying.mkdir(parents=True)
    (lying / "job.json").write_text(job.to_text())
    with parent_pipe() as pipe, (folder / "log").open("w") as log:
        entry = "airflow_provider_sparkddp.runtime.entry.sparkddp_main"
        command = [sys.executable, "-m", entry, str(path), "--parent-pipe", pipe.path, "--master", "local[2]"]
        driver = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        assert driver.stdout is not None
        with driver.stdout:
            _wait_for(point, driver, started)
            family = [psutil.Process(driver.pid), *psutil.Process(driver.pid).children(recursive=True)]
            for member in family:
                member.send_signal(signal.SIGKILL)
            driver.wait()
            psutil.wait_procs(family, timeout=10)


def _wait_for(point: str, driver: subprocess.Popen[str], started: Path) -> None:
    if point.startswith("half"):
        assert started.read_text() == "half-way"
        return
    assert driver.stdout is not None
    for line in driver.stdout:
        if line.startswith(f"sparkddp: {point} …"):
            return
    raise AssertionError(f"the job ended before {point!r}")


def ids(manifest: Manifest, uri: str) -> list[int]:
    found = [pq.ParquetFile(data_uri(uri, f).removeprefix("file://")).read(["id"]) for f in manifest.files]
    return sorted(value for table in found for value in table.column("id").to_pylist())


def test_two_runs_at_once_in_one_run_directory_mix_nothing(local_spark: Any, tmp_path: Path) -> None:
    # Both are the first try of the same task, of two DAG runs that were given one run_dir.
    both = [
        planned(tmp_path, 1, source={"sql": f"SELECT id + {start} AS id FROM range(3000)"}) for start in (0, 10_000)
    ]
    runs = [
        replace(job, nonce=f"{run:012d}", directory=f"{job.directory}-{run}", owner=OWNER.replace("run", f"run-{run}"))
        for run, job in enumerate(both)
    ]
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda job: partition.run(local_spark, job, jobs.wanted), runs))
    for start, outcome in zip((0, 10_000), outcomes, strict=True):
        uri = outcome.values["manifest"]
        manifest = Manifest.from_text(Path(uri.removeprefix("file://")).read_text(), uri)
        assert ids(manifest, uri) == list(range(start, start + 3000))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_there_is_a_whole_manifest_or_none(point: str, local_spark: Any, tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    slow = {"callable": "tests.support.slow_source:rows", "kwargs": {"count": ROWS, "started": str(started)}}
    quick = {"sql": f"SELECT id, id / 2.0d AS x FROM range(0, {ROWS}, 1, 4)"}
    first = planned(tmp_path, 1, source=slow if point.startswith("half") else quick)
    kill_at(point, first, tmp_path, started)
    left = Path(first.directory.removeprefix("file://"))
    committed = (left / "manifest.json").exists()
    assert committed in ((True, False) if POINTS[point] is None else (POINTS[point],))
    if committed:
        uri = (left / "manifest.json").as_uri()
        assert ids(Manifest.from_text((left / "manifest.json").read_text(), uri), uri) == list(range(ROWS))
    assert not (left / "result.json").exists()

    second = planned(tmp_path, 2, source=quick)
    outcome = partition.run(local_spark, second, jobs.wanted)
    uri = outcome.values["manifest"]
    assert ids(Manifest.from_text(Path(uri.removeprefix("file://")).read_text(), uri), uri) == list(range(ROWS))
    # Of a try without a manifest nothing is left but its job.json; one with a manifest may be somebody's.
    assert (left / "data").exists() == committed
    assert (left / "job.json").exists()

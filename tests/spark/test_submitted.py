"""Jobs as Airflow's side submits them: on a real cluster, killed from outside, and replayed by hand."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support import jobs, submit
from tests.support.spark_cluster import Cluster, Worker, cluster

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "support" / "tiny_model.py"
SQL = "SELECT a, b, 2 * a - b + 1 AS y FROM (SELECT rand(1) AS a, rand(2) AS b FROM range(0, 1000, 1, 3))"
GPUS = {"spark.executor.resource.gpu.amount": "2", "spark.task.resource.gpu.amount": "1", "spark.executor.cores": "2"}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("submitted")


@pytest.fixture(scope="session")
def manifest(folder: Path) -> str:
    """Partitions for two ranks, written by a submitted job on an embedded Spark."""
    with pytest.MonkeyPatch.context() as patch:
        for key, value in submit.connection("local[2]").items():
            patch.setenv(key, value)
        job = jobs.job("partition", folder, source={"sql": SQL}, num_nodes=2, validation=0.1)
        return str(submit.submit(job, "local[2]", {"spark.ui.enabled": "false"}).values["manifest"])


def training(manifest: str, **settings: Any) -> dict[str, Any]:
    given = {"partitions": manifest, "model": "tiny_model:Line", "features": ["a", "b"], "target": "y"}
    return {**given, **settings}


@pytest.mark.slow
def test_the_line_runs_on_a_cluster_of_two_workers(
    gpu_cluster: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for key, value in submit.connection(gpu_cluster.master).items():
        monkeypatch.setenv(key, value)
    conf = {**gpu_cluster.conf(), **GPUS}
    job = jobs.job("partition", folder, source={"sql": SQL}, num_nodes=4, validation=0.1)
    partitions = submit.submit(job, gpu_cluster.master, conf).values
    assert [len(rows) for rows in partitions["rows"].values()] == [4, 4]
    job = jobs.job("train", folder, **training(partitions["manifest"]))
    result = submit.submit(job, gpu_cluster.master, conf, [str(MODELS)])
    assert result.values["world_size"] == 4
    assert sorted(gpu for rank in result.report["ranks"] for gpu in rank["gpus"]) == ["0", "1", "2", "3"]
    proved = storage.names(f"{job.directory}/probe")
    assert "driver" in proved
    assert any(name.startswith("executor-") for name in proved)


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare, to hide a folder from a worker"
)
def test_a_run_directory_that_is_not_shared_is_found_out_at_once(
    manifest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden, logs = tmp_path / "hidden", tmp_path / "logs"
    hidden.mkdir()
    logs.mkdir()
    # A worker in a mount namespace of its own, with an empty file system where the run directory lies.
    worker = Worker(
        cores=2, prefix=["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {hidden} && exec "$0" "$@"']
    )
    with cluster(logs, [worker]) as running:
        for key, value in submit.connection(running.master).items():
            monkeypatch.setenv(key, value)
        job = jobs.job("train", hidden, **training(manifest, executors_timeout=60))
        with pytest.raises(SparkDDPError) as caught:
            submit.submit(job, running.master, running.conf(), [str(MODELS)])
    assert caught.value.code == "SDDP-302"
    assert "what the driver wrote isn't there" in caught.value.message
    assert not storage.names(f"{job.directory}/progress")


def start_and_wait_until_it_trains(manifest: str, folder: Path) -> subprocess.Popen[str]:
    """A task-like process with a training that goes on, from when rank 0 trains."""
    pipe = folder / "trains"
    os.mkfifo(pipe)
    settings = training(
        manifest, model="tiny_model:Waits", model_kwargs={"pipe": str(pipe)}, trainer={"max_epochs": 1000}
    )
    asked = {
        "kind": "train",
        "master": "local[2]",
        "folder": str(folder),
        "settings": settings,
        "py_files": [str(MODELS)],
    }
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.submit"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        text=True,
    )
    log.close()
    assert process.stdin is not None
    process.stdin.write(json.dumps({**asked, "conf": {"spark.ui.enabled": "false"}}))
    process.stdin.close()
    try:
        assert pipe.read_text().isdigit(), (folder / "log").read_text()
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process


@pytest.mark.timeout(300)
def test_a_driver_whose_task_was_killed_ends_within_ten_seconds_and_publishes_nothing(
    manifest: str, tmp_path: Path
) -> None:
    task = start_and_wait_until_it_trains(manifest, tmp_path)
    family = psutil.Process(task.pid).children(recursive=True)
    names = [" ".join(member.cmdline()) for member in family]
    assert any("sparkddp_main" in name for name in names)
    assert any("pyspark.daemon" in name for name in names), "no rank is running, so this proves nothing"
    os.kill(task.pid, signal.SIGKILL)
    task.wait()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive
    assert not list(tmp_path.rglob("result.json"))
    assert not list(tmp_path.rglob("model.json"))


@pytest.mark.timeout(180)
def test_a_job_is_replayed_without_airflow(manifest: str, tmp_path: Path) -> None:
    job = jobs.job("train", tmp_path, **training(manifest, model="tests.support.tiny_model:Line"))
    (tmp_path / "job.json").write_text(job.to_text())
    command = [
        sys.executable,
        "-m",
        "airflow_provider_sparkddp.runtime.entry.sparkddp_main",
        str(tmp_path / "job.json"),
    ]
    ran = subprocess.run([*command, "--master", "local[2]"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 ranks, ddp, 32-true" in ran.stdout
    results = list(tmp_path.rglob("replay-*/result.json"))
    assert len(results) == 1
    assert json.loads(results[0].read_text())["body"]["failure"] is None


def test_the_entry_explains_itself_and_refuses_what_is_no_job(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "airflow_provider_sparkddp.runtime.entry.sparkddp_main"]
    helped = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
    assert "job.json" in helped.stdout
    assert "replay" in helped.stdout
    (tmp_path / "job.json").write_text("{}")
    ran = subprocess.run([*command, str(tmp_path / "job.json")], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "SDDP-306" in ran.stderr

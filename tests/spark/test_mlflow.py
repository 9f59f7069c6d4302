"""MLflow from rank 0: to a real server, and to files on the run's storage. Its packages lie apart: they don't fit beside Airflow's."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning

from airflow_provider_sparkddp.runtime.jobs import train
from tests.spark.conftest import ROOT, start_session, stop_session
from tests.support import jobs, walk

pytestmark = pytest.mark.slow

READ = """
import sys
from mlflow.tracking import MlflowClient
client = MlflowClient(sys.argv[1])
(run,) = client.search_runs([client.get_experiment_by_name("flights").experiment_id])
print(run.info.status, len(client.get_metric_history(run.info.run_id, "val_mae")), run.data.params["learning_rate"])
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with MLflow, and below it all that this one has."""
    folder = tmp_path_factory.mktemp("mlflow") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "below.pth").write_text(f"{Path(pytorch_lightning.__file__).parents[1]}\n")
    made = str(folder / "bin" / "python")
    subprocess.run([made, "-m", "pip", "install", "--quiet", "--no-compile", "mlflow>=3.7,<4"], check=True)
    return made


@pytest.fixture(scope="module")
def spark(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Its Python workers are of that interpreter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", python)
        started = start_session("local[2]", {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))})
        yield started
        stop_session(started)


@pytest.fixture(scope="module")
def server(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real MLflow server's URI."""
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    store = [
        "--backend-store-uri",
        f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination",
        str(folder / "artifacts"),
    ]
    command = [python, "-m", "mlflow", "server", "--port", str(port), "--workers", "1", *store]
    process = subprocess.Popen(command, cwd=folder, start_new_session=True)
    try:
        _answers(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, 15)
        process.wait(timeout=30)


def _answers(uri: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            with urllib.request.urlopen(uri, timeout=5):
                return
        except OSError:
            continue
    raise RuntimeError(f"the server ended with {process.returncode}")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> str:
    return walk.line_manifest(tmp_path_factory.mktemp("mlflow-data"))


def logged(python: str, uri: str) -> list[str]:
    environment = {**os.environ, "MLFLOW_ALLOW_FILE_STORE": "true", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([python, "-c", READ, uri], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("to_server", [True, False], ids=["server", "files"])
def test_a_run_of_two_epochs_is_in_mlflow(
    to_server: bool, spark: Any, python: str, manifest: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kwargs = {"experiment_name": "flights"}
    if to_server:
        kwargs["tracking_uri"] = request.getfixturevalue("server")
    logger = {"$import": "lightning.pytorch.loggers:MLFlowLogger", "kwargs": kwargs}
    given = {"model": f"{walk.MODELS}:Line", "features": ["a", "b"], "target": "y", "num_nodes": 2}
    job = jobs.job("train", tmp_path, partitions=manifest, trainer={"max_epochs": 2, "logger": logger}, **given)
    values = train.run(spark, job, jobs.wanted).values
    assert values["loggers"] == {"mlflow": None if to_server else f"{job.directory}/logs/mlflow"}
    assert logged(python, kwargs.get("tracking_uri") or values["loggers"]["mlflow"]) == ["FINISHED", "2", "0.1"]

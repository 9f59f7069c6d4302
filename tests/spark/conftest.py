"""Spark for these tests: one embedded session a module, or a cluster of two workers with GPU addresses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.sources import shapes
from tests.support.spark_cluster import Cluster, Worker, cluster

ROOT = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    skip = None if _java() else pytest.mark.skip(reason="Spark needs Java 17 or newer, and none is on PATH")
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)
            if skip:
                item.add_marker(skip)


def _java() -> bool:
    java = shutil.which("java")
    return bool(java) and subprocess.run([java, "-version"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="session", autouse=True)
def python_of_workers() -> Iterator[None]:
    """Only spark-submit reads spark.pyspark.python; a session made in this process takes the variable."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", str(ROOT))
        yield


def start_session(master: str, conf: dict[str, str]) -> Any:
    """A session whose Python workers find this repository's tests as well as the package."""
    from pyspark.sql import SparkSession

    assert SparkSession.getActiveSession() is None, "a session of another fixture is still there and would be taken"
    builder = SparkSession.builder.master(master).appName("tests")
    fixed = {
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
    }
    for key, value in {**fixed, **conf}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def stop_session(spark: Any) -> None:
    """End the session and its JVM: Spark keeps the default resource profile of a JVM's first context for ever."""
    from pyspark import SparkContext

    spark.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=30)
    SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture(scope="module")
def local_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """`local[4]`."""
    spark = start_session("local[4]", {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))})
    yield spark
    stop_session(spark)


@pytest.fixture(scope="session")
def gpu_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers of two cores, each with two GPU addresses of its own."""
    workers = [Worker(cores=2, gpus=("0", "1")), Worker(cores=2, gpus=("2", "3"))]
    with cluster(tmp_path_factory.mktemp("cluster"), workers) as running:
        yield running


@pytest.fixture(scope="module")
def cluster_spark(gpu_cluster: Cluster) -> Iterator[Any]:
    gpus = {"spark.executor.resource.gpu.amount": "2", "spark.task.resource.gpu.amount": "1"}
    spark = start_session(gpu_cluster.master, {**gpu_cluster.conf(), **gpus, "spark.executor.cores": "2"})
    yield spark
    stop_session(spark)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Its name has a space and letters beyond ASCII, as `NAME` has: Spark encodes some of that in its paths."""
    return tmp_path / "län der"


@pytest.fixture(params=[0, shapes.FEW], ids=["by executors", "by the driver"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "FEW", request.param)

"""One task a node on a cluster that hands out GPU addresses, and executors that were set up differently."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.jobs import train
from airflow_provider_sparkddp.runtime.jobs.cluster import require_slots
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from tests.spark.conftest import start_session, stop_session
from tests.support import jobs, walk
from tests.support.barrier import check_ranks, run
from tests.support.spark_cluster import Cluster, Worker, cluster

pytestmark = pytest.mark.slow
TWO_A_TASK = {"spark.task.cpus": "2", "spark.executor.cores": "2", "spark.task.resource.gpu.amount": "2"}


def test_a_node_s_devices_are_dealt_to_its_ranks(gpu_cluster: Cluster, tmp_path: Path) -> None:
    conf = {**gpu_cluster.conf(), **TWO_A_TASK, "spark.executor.resource.gpu.amount": "2"}
    spark = start_session(gpu_cluster.master, conf)
    try:
        require_slots(spark, 4, 60, ranks_per_task=2)
        reports = run(spark, "all_reduce", tmp_path, ranks_per_task=2)
        with pytest.raises(SparkDDPError, match=r"ranks_per_task=3, and Spark gave the task 2 GPUs") as caught:
            run(spark, "all_reduce", tmp_path / "three", world_size=6, ranks_per_task=3)
        with pytest.raises(SparkDDPError, match="CUDA_VISIBLE_DEVICES is '7'"):
            run(spark, "all_reduce_where_devices_are_set", tmp_path / "set", ranks_per_task=2)
        trained = train.run(spark, _job(tmp_path / "trained"), jobs.wanted).values
    finally:
        stop_session(spark)
    check_ranks(reports)
    assert trained["world_size"] == 4
    assert trained["losses"][-1] < 0.5 * trained["losses"][0]
    assert [r["threads"] for r in reports] == [1, 1, 1, 1]
    pairs = [{r["gpus"] for r in reports[:2]}, {r["gpus"] for r in reports[2:]}]
    assert sorted(map(sorted, pairs)) == [["0", "1"], ["2", "3"]], "a task's ranks have its worker's addresses"
    assert caught.value.code == "SDDP-307"


def _job(folder: Path) -> Job:
    """The addresses are no real GPUs, so it trains on the CPU, in tasks of two ranks."""
    given = {"model": f"{walk.MODELS}:Line", "features": ["a", "b"], "target": "y", "ranks_per_task": 2}
    trainer = {"max_epochs": walk.EPOCHS, "accelerator": "cpu"}
    manifest = walk.line_manifest(folder / "data")
    return jobs.job("train", folder, partitions=manifest, num_nodes=2, devices=2, trainer=trainer, **given)


def test_more_gpus_than_any_worker_offers(gpu_cluster: Cluster) -> None:
    gpus = {"spark.executor.resource.gpu.amount": "4", "spark.task.resource.gpu.amount": "1"}
    spark = start_session(gpu_cluster.master, {**gpu_cluster.conf(), **gpus})
    try:
        with pytest.raises(SparkDDPError, match="each executor for 4: only workers that offer as many") as caught:
            require_slots(spark, 4, 3)
    finally:
        stop_session(spark)
    assert caught.value.code == "SDDP-303"
    assert "offers 0 (waited 3 s)" in caught.value.message


@pytest.fixture
def unlike_workers(tmp_path: Path) -> Iterator[Any]:
    """A session on two workers, of which one says that it has another torch."""
    for name, version in (("plain", None), ("other", "9.9.9")):
        (tmp_path / name).mkdir()
        if version:
            metadata = tmp_path / name / f"torch-{version}.dist-info" / "METADATA"
            metadata.parent.mkdir()
            metadata.write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$SDDP_FIRST:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    workers = [Worker(cores=1, prefix=["env", f"SDDP_FIRST={tmp_path / name}"]) for name in ("plain", "other")]
    with cluster(tmp_path, workers) as running:
        conf = {**running.conf(), "spark.pyspark.python": str(python), "spark.executor.cores": "1"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYSPARK_PYTHON", str(python))
            patch.setenv("SDDP_FIRST", "")
            spark = start_session(running.master, conf)
            yield spark
            stop_session(spark)


@pytest.mark.parametrize("ranks_per_task", [1, 2])
def test_executors_of_unlike_versions_are_told_in_a_table(
    ranks_per_task: int, unlike_workers: Any, tmp_path: Path
) -> None:
    require_slots(unlike_workers, 2, 60)
    with pytest.raises(SparkDDPError, match=r"differ in torch .*127\.0\.0\.1: torch 2\..*torch 9\.9\.9") as caught:
        run(unlike_workers, "all_reduce", tmp_path, 2 * ranks_per_task, ranks_per_task)
    assert caught.value.code == "SDDP-311"

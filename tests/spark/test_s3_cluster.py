"""A cluster and an Airflow worker that share nothing but a bucket: each process knows of it by its own environment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from tests.support import jobs, submit
from tests.support.s3 import Bucket
from tests.support.spark_cluster import Cluster, Worker, cluster

pytestmark = pytest.mark.slow

MODELS = Path(__file__).resolve().parents[1] / "support" / "tiny_model.py"
SQL = "SELECT a, b, 2 * a - b + 1 AS y FROM (SELECT rand(1) AS a, rand(2) AS b FROM range(0, 1000, 1, 3))"


@pytest.fixture(scope="module")
def workers(bucket: Bucket, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers of a core each, started where the environment names the bucket's place: so it does for their executors."""
    logs = tmp_path_factory.mktemp("cluster")
    with cluster(logs, [Worker(cores=1), Worker(cores=1)]) as running, pytest.MonkeyPatch.context() as patch:
        for key, value in submit.connection(running.master).items():
            patch.setenv(key, value)
        yield running


def in_bucket(job: Job, bucket: Bucket) -> Job:
    return replace(job, directory=f"{bucket.uri}/runs/{job.kind}-{job.nonce}")


def submitted(workers: Cluster, bucket: Bucket, job: Job, **conf: str) -> Any:
    return submit.submit(in_bucket(job, bucket), workers.master, {**workers.conf(), **conf}, [str(MODELS)])


def test_executors_and_driver_meet_in_the_bucket(workers: Cluster, bucket: Bucket, tmp_path: Path) -> None:
    job = jobs.job("partition", tmp_path, source={"sql": SQL}, num_nodes=2, validation=0.1)
    partitions = submitted(workers, bucket, job).values
    assert [len(rows) for rows in partitions["rows"].values()] == [2, 2]
    assert sum(partitions["total_rows"].values()) == 1000
    proved = storage.names(paths.join(paths.parent(partitions["manifest"]), paths.PROBE))
    assert "driver" in proved
    assert any(name.startswith("executor-") for name in proved)

    settings = {"partitions": partitions["manifest"], "model": "tiny_model:Line", "features": ["a", "b"], "target": "y"}
    trained = submitted(workers, bucket, jobs.job("train", tmp_path, **settings))
    assert trained.values["world_size"] == 2
    assert "model.json" in storage.names(trained.values["model"])
    assert list(tmp_path.iterdir()) == []


def test_executors_that_cannot_reach_the_bucket_are_found_out_at_once(
    workers: Cluster, bucket: Bucket, tmp_path: Path
) -> None:
    job = jobs.job("partition", tmp_path, source={"sql": SQL}, num_nodes=2)
    # As on hosts that were set up for somebody else, while the driver's is well.
    with pytest.raises(SparkDDPError) as caught:
        submitted(workers, bucket, job, **{"spark.executorEnv.AWS_PROFILE": "somebody-else"})
    assert caught.value.code == "SDDP-302"
    assert "the executor on " in caught.value.message
    assert "somebody-else" in caught.value.message

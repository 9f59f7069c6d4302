"""DDP across two hosts: network namespaces with their own addresses over a bridge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.jobs.cluster import require_slots
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.hosts import namespaces
from tests.spark.conftest import python_of_workers, start_session, stop_session
from tests.support.barrier import run
from tests.support.spark_cluster import Worker, cluster

__all__ = ["python_of_workers"]


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session whose two executors run on two hosts, one core each."""
    reason = namespaces.missing()
    if reason:
        pytest.skip(reason)
    namespaces.make_hosts()
    driver = namespaces.DRIVER
    workers = [
        Worker(cores=1, prefix=["ip", "netns", "exec", name], host=address)
        for name, address in namespaces.HOSTS.items()
    ]
    try:
        with cluster(tmp_path_factory.mktemp("hosts"), workers, host=driver) as running:
            here = {"spark.driver.host": driver, "spark.driver.bindAddress": driver, "spark.executor.cores": "1"}
            spark = start_session(running.master, {**running.conf(), **here})
            require_slots(spark, 2, 60)
            yield spark
            stop_session(spark)
    finally:
        namespaces.remove_hosts()


@pytest.mark.hosts
def test_two_ranks_agree_across_two_hosts(two_hosts: Any, tmp_path: Path) -> None:
    reports = run(two_hosts, "all_reduce", tmp_path, world_size=2)
    assert {r["sum"] for r in reports} == {2.0}
    assert {r["host"] for r in reports} == set(namespaces.HOSTS.values())
    assert {r["interface"] for r in reports} == {"eth7"}
    assert [(r["local_rank"], r["node_rank"]) for r in reports] == [(0, 0), (0, 1)]


@pytest.mark.hosts
@pytest.mark.timeout(120)
def test_without_the_interface_the_ranks_would_look_for_each_other_on_their_own_loopback(
    two_hosts: Any, tmp_path: Path
) -> None:
    with pytest.raises(SparkDDPError) as caught:
        run(two_hosts, "without_interface", tmp_path, world_size=2)
    assert caught.value.code == "SDDP-405"
    assert "remote=[127.0.0.1]" in caught.value.message
    assert "127.0.0.1" in caught.value.details["traceback"]

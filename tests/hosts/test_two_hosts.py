"""DDP across two hosts: network namespaces with their own addresses over a bridge."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.jobs.cluster import require_slots
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.spark.conftest import python_of_workers, start_session, stop_session
from tests.support.barrier import run
from tests.support.spark_cluster import Worker, cluster

__all__ = ["python_of_workers"]

BRIDGE, NETWORK = "sddpbr0", "10.203.77"
HOSTS = {"sddp-a": f"{NETWORK}.11", "sddp-b": f"{NETWORK}.12"}


def ip(*arguments: str, check: bool = True) -> None:
    subprocess.run(["ip", *arguments], check=check, capture_output=True)


def remove_hosts() -> None:
    for index, name in enumerate(HOSTS):
        # The pair first: with its namespace it would go some time later, and its name be taken meanwhile.
        ip("link", "del", f"sddpv{index}", check=False)
        ip("netns", "del", name, check=False)
    ip("link", "del", BRIDGE, check=False)


def make_hosts() -> None:
    """Two namespaces, each with an interface on the bridge; this process's side of the bridge is the driver's."""
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")
    for index, (name, address) in enumerate(HOSTS.items()):
        ip("netns", "add", name)
        ip("link", "add", f"sddpv{index}", "type", "veth", "peer", "name", "eth7", "netns", name)
        ip("link", "set", f"sddpv{index}", "master", BRIDGE, "up")
        for command in (
            ["addr", "add", f"{address}/24", "dev", "eth7"],
            ["link", "set", "eth7", "up"],
            ["link", "set", "lo", "up"],
        ):
            ip("-n", name, *command)


def missing() -> str | None:
    """Why two hosts can't be made here."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not shutil.which("ip"):
        return "network namespaces need the command ip (Debian's iproute2)"
    if not shutil.which("java"):
        return "Spark needs Java 17 or newer, and none is on PATH"
    remove_hosts()
    try:
        make_hosts()
    except subprocess.CalledProcessError as error:
        return f"network namespaces can't be made here: {error.stderr.decode().strip()}"
    finally:
        remove_hosts()
    return None


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session whose two executors run on two hosts, one core each."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    make_hosts()
    driver = f"{NETWORK}.1"
    workers = [Worker(cores=1, prefix=["ip", "netns", "exec", name], host=address) for name, address in HOSTS.items()]
    try:
        with cluster(tmp_path_factory.mktemp("hosts"), workers, host=driver) as running:
            here = {"spark.driver.host": driver, "spark.driver.bindAddress": driver, "spark.executor.cores": "1"}
            spark = start_session(running.master, {**running.conf(), **here})
            require_slots(spark, 2, 60)
            yield spark
            stop_session(spark)
    finally:
        remove_hosts()


@pytest.mark.hosts
def test_two_ranks_agree_across_two_hosts(two_hosts: Any, tmp_path: Path) -> None:
    reports = run(two_hosts, "all_reduce", tmp_path, world_size=2)
    assert {r["sum"] for r in reports} == {2.0}
    assert {r["host"] for r in reports} == set(HOSTS.values())
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

"""Two hosts whose firewalls leave one range of ports open."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.hooks.plan import spark_conf
from airflow_provider_sparkddp.runtime.jobs import train
from airflow_provider_sparkddp.runtime.jobs.cluster import require_slots
from airflow_provider_sparkddp.spec import jobs as kinds
from tests.hosts import namespaces
from tests.spark.conftest import python_of_workers, start_session, stop_session
from tests.support import jobs, walk
from tests.support.spark_cluster import Worker, cluster

__all__ = ["python_of_workers"]

FIRST, LAST = 34000, 34100
RANGE = f"{FIRST}-{LAST}"


@pytest.fixture
def behind_firewalls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session with an executor on each of two hosts, to which nothing gets but by the range."""
    reason = namespaces.missing("iptables")
    if reason:
        pytest.skip(reason)
    namespaces.make_hosts()
    hosts = namespaces.HOSTS.items()
    workers = [Worker(cores=1, prefix=["ip", "netns", "exec", name], host=address) for name, address in hosts]
    with ExitStack() as stack:
        stack.callback(namespaces.remove_hosts)
        running = stack.enter_context(cluster(tmp_path_factory.mktemp("firewall"), workers, host=namespaces.DRIVER))
        stack.enter_context(namespaces.firewall(FIRST, LAST, int(running.master.rpartition(":")[2])))
        here = {"spark.driver.host": namespaces.DRIVER, "spark.driver.bindAddress": namespaces.DRIVER}
        planned = spark_conf(kinds.TRAIN, {"port_range": RANGE}, {}, running.master, "python3")
        ports = {key: value for key, value in planned.items() if "ort" in key.rpartition(".")[2] or "maxRetries" in key}
        assert len(ports) == 3
        spark = start_session(running.master, {**running.conf(), **here, **ports, "spark.executor.cores": "1"})
        stack.callback(stop_session, spark)
        require_slots(spark, 2, 60)
        yield spark


def answers(port: int) -> bool:
    """Whether a listener on the first host is reached from the driver's side."""
    name, address = next(iter(namespaces.HOSTS.items()))
    code = f"import socket; s = socket.create_server(({address!r}, {port})); print('ready', flush=True); s.accept()"
    command = ["ip", "netns", "exec", name, sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as listener:
        assert listener.stdout is not None
        listener.stdout.readline()
        try:
            socket.create_connection((address, port), timeout=2).close()
        except TimeoutError:
            return False
        finally:
            listener.kill()
    return True


@pytest.mark.hosts
@pytest.mark.slow
@pytest.mark.timeout(180)
def test_two_hosts_train_through_the_range_alone(behind_firewalls: Any, tmp_path: Path) -> None:
    manifest = walk.line_manifest(tmp_path / "data")
    assert answers(FIRST + 50)
    assert not answers(LAST + 50), "the firewall lets everything through"
    with namespaces.kernel_ports(FIRST, LAST):
        job = jobs.job(
            "train",
            tmp_path,
            partitions=manifest,
            num_nodes=2,
            model=f"{walk.MODELS}:Line",
            features=["a", "b"],
            target="y",
            port_range=RANGE,
            trainer={"max_epochs": walk.EPOCHS},
        )
        values = train.run(behind_firewalls, job, jobs.wanted).values
    assert values["losses"][-1] < 0.5 * values["losses"][0]
    assert FIRST <= int(behind_firewalls.sparkContext.getConf().get("spark.driver.port")) <= LAST

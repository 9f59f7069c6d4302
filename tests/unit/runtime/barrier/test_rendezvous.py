"""A rank's environment says what Spark decided, and contradicts nothing silently."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.barrier.rendezvous import _host, listen, rank_environment
from tests.support.refusals import refused

INFO = RankInfo(
    rank=3,
    world_size=4,
    local_rank=1,
    local_world_size=2,
    node_rank=1,
    host="10.0.0.2",
    main_address="10.0.0.1",
    main_port=29500,
    gpus=(),
    threads=4,
    interface="eth0",
)
ON_GPUS = replace(INFO, gpus=("2", "3"))


def test_the_environment_is_that_of_the_rank() -> None:
    assert rank_environment(INFO, {}) == {
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "29500",
        "RANK": "3",
        "WORLD_SIZE": "4",
        # Each task has one device, whatever its place on the host.
        "LOCAL_RANK": "0",
        "OMP_NUM_THREADS": "4",
        "GLOO_SOCKET_IFNAME": "eth0",
        "NCCL_SOCKET_IFNAME": "eth0",
    }


def test_without_a_known_interface_none_is_named() -> None:
    assert not [name for name in rank_environment(replace(INFO, interface=None), {}) if "IFNAME" in name]


@pytest.mark.parametrize("inherited", [{}, {"CUDA_VISIBLE_DEVICES": ""}, {"CUDA_VISIBLE_DEVICES": "0,1, 2 ,3"}])
def test_a_rank_sees_the_gpus_that_spark_gave_it_and_no_other(inherited: dict[str, str]) -> None:
    assert rank_environment(ON_GPUS, inherited)["CUDA_VISIBLE_DEVICES"] == "2,3"


@pytest.mark.parametrize("visible", ["0,1", "2", "GPU-1234", "23"])
def test_visible_devices_that_contradict_spark_are_refused_with_both(visible: str) -> None:
    with refused("SDDP-307", "rank 3", "2, 3", repr(visible), "Unset CUDA_VISIBLE_DEVICES"):
        rank_environment(ON_GPUS, {"CUDA_VISIBLE_DEVICES": visible})


def test_without_gpus_of_sparks_the_variable_is_left_alone() -> None:
    assert "CUDA_VISIBLE_DEVICES" not in rank_environment(INFO, {"CUDA_VISIBLE_DEVICES": "0"})


@pytest.mark.parametrize(
    ("address", "host"), [("10.0.0.1:40123", "10.0.0.1"), ("worker-1.local:7", "worker-1.local"), ("[::1]:7", "[::1]")]
)
def test_the_host_of_an_executor_is_its_address_without_the_port(address: str, host: str) -> None:
    assert _host(address) == host


@pytest.fixture
def three_ports() -> Iterator[tuple[int, list[socket.socket]]]:
    """The first of three ports in a row that are held, and what holds them."""
    with ExitStack() as stack:
        for first in range(41000, 60000, 3):
            held = [stack.enter_context(socket.socket()) for _ in range(3)]
            try:
                for port, each in enumerate(held, first):
                    each.bind(("", port))
                    each.listen()
            except OSError:
                continue
            yield first, held
            return


def test_the_store_takes_the_first_free_port_of_the_range(three_ports: tuple[int, list[socket.socket]]) -> None:
    first, held = three_ports
    held[1].close()
    with listen("127.0.0.1", (first, first + 2)) as found:
        assert found.getsockname() == ("127.0.0.1", first + 1)


def test_a_range_that_is_taken_is_named(three_ports: tuple[int, list[socket.socket]]) -> None:
    first, _ = three_ports
    with refused("SDDP-312", f"port_range {first}-{first + 2}", "larger range"):
        listen("127.0.0.1", (first, first + 2))

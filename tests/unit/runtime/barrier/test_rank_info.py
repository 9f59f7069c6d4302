"""A rank's place among the hosts, and its share of its executor's cores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparkddp.runtime.barrier.rank_info import Place, threads_for

HOSTS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=12)


def test_hosts_may_be_uneven_and_interleaved() -> None:
    hosts = ["b", "a", "b", "c", "b"]
    assert [Place.of(rank, hosts) for rank in range(5)] == [
        Place(local_rank=0, local_world_size=3, node_rank=0),
        Place(local_rank=0, local_world_size=1, node_rank=1),
        Place(local_rank=1, local_world_size=3, node_rank=0),
        Place(local_rank=0, local_world_size=1, node_rank=2),
        Place(local_rank=2, local_world_size=3, node_rank=0),
    ]


@given(HOSTS)
def test_each_host_counts_its_ranks_from_zero_without_a_gap(hosts: list[str]) -> None:
    places = [Place.of(rank, hosts) for rank in range(len(hosts))]
    assert sorted({place.node_rank for place in places}) == list(range(len(set(hosts))))
    for host in set(hosts):
        here = [place for place, at in zip(places, hosts, strict=True) if at == host]
        assert [place.local_rank for place in here] == list(range(len(here)))
        assert {place.local_world_size for place in here} == {len(here)}
        assert len({place.node_rank for place in here}) == 1


@pytest.mark.parametrize(
    ("executors", "cores", "reserved", "expected"),
    [
        (["a", "b"], 8, 1, [8, 8]),
        (["a", "a"], 8, 1, [4, 4]),
        (["a", "a", "a"], 8, 1, [2, 2, 2]),
        (["a", "a", "b"], 8, 1, [4, 4, 8]),
        (["a", "a"], 2, 2, [2, 2]),
        (["a", "a"], 1, 1, [1, 1]),
        (["a"], 0, 0, [1]),
    ],
    ids=["alone", "two", "three", "uneven", "reserved", "crowded", "nothing known"],
)
def test_a_rank_gets_its_share_of_the_cores_and_never_less_than_spark_reserved(
    executors: list[str], cores: int, reserved: int, expected: list[int]
) -> None:
    assert [threads_for(rank, executors, cores, reserved) for rank in range(len(executors))] == expected

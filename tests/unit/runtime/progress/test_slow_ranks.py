"""A rank that is 20 % slower than the others at its own work is named, with what it is slow at."""

from __future__ import annotations

import pytest

from airflow_provider_sparkddp.runtime.progress.slow_ranks import SlowRank, slow_ranks


@pytest.mark.parametrize(
    ("data", "compute", "found"),
    [
        ([1, 1, 1, 1], [10, 10, 12.2, 10], [(2, "compute")]),
        ([1, 1, 6, 1], [10, 10, 10, 10], [(2, "data")]),
        ([1, 9], [10, 10], [(1, "data")]),
        ([5, 1], [1, 9], [(1, "compute")]),
        ([1, 1, 1, 1], [10, 10, 12.19, 10], []),
        ([1, 1, 1, 1], [10, 8, 10, 10], []),
        ([0, 0, 0, 0], [9, 1, 9, 1], [(0, "compute"), (2, "compute")]),
        ([1], [10], []),
        ([0, 0], [0, 0], []),
    ],
)
def test_slow_is_a_fifth_above_the_median_of_the_others(
    data: list[float], compute: list[float], found: list[tuple[int, str]]
) -> None:
    assert [(slow.rank, slow.at) for slow in slow_ranks(data, compute, 20)] == found


@pytest.mark.parametrize(("seconds", "compute"), [(1.0, 0.9), (100.0, 4.9)])
def test_what_costs_next_to_nothing_is_chance(seconds: float, compute: float) -> None:
    assert slow_ranks([0, 0], [0, compute], seconds) == []


def test_it_tells_the_figures() -> None:
    (slow,) = slow_ranks([1, 1, 1], [2, 8, 4], 10)
    assert slow == SlowRank(1, "compute", 9, 4)
    assert slow.to_json() == {"rank": 1, "at": "compute", "seconds": 9, "others": 4}
    assert str(slow) == (
        "slower than the other ranks, at its compute: 9.0 s of its own work (waiting for data and in training_step), "
        "the others' median is 4.0 s"
    )


def test_a_thousand_ranks_are_compared() -> None:
    compute = [10.0 + rank / 1000 for rank in range(1000)]
    compute[700] = 13.0
    assert [slow.rank for slow in slow_ranks([0.0] * 1000, compute, 20)] == [700]

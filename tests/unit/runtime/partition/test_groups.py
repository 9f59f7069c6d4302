"""Groups are packed longest-first: balanced where that is possible, and quickly for very many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparkddp.runtime.partition import groups
from airflow_provider_sparkddp.runtime.partition.groups import Packing, pack


def loads(rows: np.ndarray, bins: int) -> np.ndarray:
    return np.bincount(pack(rows, bins), weights=rows, minlength=bins)


def zipf(number: int, exponent: float) -> np.ndarray:
    return np.maximum(1, 1_000_000 / np.arange(1, number + 1) ** exponent).astype(np.int64)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=60), st.integers(1, 9))
def test_no_bin_holds_more_than_the_bound_of_longest_first(sizes: list[int], bins: int) -> None:
    rows = np.array(sizes, dtype=np.int64)
    # Graham's bound holds against the best packing, which is at least the mean, the largest group, and, where there are more groups
    # than bins, two of the smaller ones together.
    ordered = sorted(sizes, reverse=True)
    best = max(rows.sum() / bins, ordered[0], ordered[bins - 1] + ordered[bins] if len(ordered) > bins else 0)
    assert loads(rows, bins).max() <= best * (4 / 3 - 1 / (3 * bins)) + 1e-9


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=60), st.integers(1, 9))
def test_every_group_has_a_bin_and_no_bin_is_empty_where_there_are_enough(sizes: list[int], bins: int) -> None:
    found = pack(np.array(sizes, dtype=np.int64), bins)
    assert len(found) == len(sizes)
    assert set(found.tolist()) <= set(range(bins))
    assert len(set(found.tolist())) == min(bins, len(sizes))


@pytest.mark.parametrize("exponent", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("bins", [2, 7, 32])
def test_zipf_groups_are_balanced_within_two_percent_given_a_hundred_a_rank(exponent: float, bins: int) -> None:
    rows = zipf(100 * bins, exponent)
    assert rows.max() <= rows.sum() / bins, "otherwise no packing could"
    assert loads(rows, bins).max() <= 1.02 * rows.sum() / bins


def test_one_group_that_is_larger_than_the_mean_has_a_bin_of_its_own() -> None:
    rows = np.array([1000, 10, 10, 10, 10, 10])
    assert sorted(loads(rows, 3).tolist()) == [20, 30, 1000]


def test_the_packing_is_the_same_each_time() -> None:
    rows = np.random.default_rng(0).integers(1, 100, 10_000)
    assert np.array_equal(pack(rows, 16), pack(rows.copy(), 16))


def test_files_of_a_rank_follow_one_another_and_are_balanced_too() -> None:
    rows = zipf(3000, 0.5)
    bins = groups._bins(rows, 3, 4)
    files = np.bincount(bins, weights=rows, minlength=12).reshape(3, 4)
    assert files.sum(axis=1).max() <= 1.02 * rows.sum() / 3
    assert files.max() <= 1.05 * rows.sum() / 12


def test_rows_and_groups_of_a_bin_are_counted_by_split() -> None:
    rows = {"train": np.array([5, 3, 0]), "validation": np.array([0, 2, 1]), "test": np.array([0, 0, 0])}
    packing = Packing(np.arange(3), np.array([0, 1, 1], dtype=np.int32), rows, np.array([1, 2]), bucketed=False)
    assert packing.bin_rows("train").tolist() == [5, 3]
    assert packing.bin_rows("validation").tolist() == [0, 3]

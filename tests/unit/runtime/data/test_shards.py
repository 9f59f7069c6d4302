"""Who reads what: every row exactly once, equal steps, no empty batch, whatever the files and the number of ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparkddp.runtime.data.shards import (
    TOLERANCE,
    TOLERANCE_ROWS,
    balanced,
    batch_bounds,
    deal,
    shares_for,
    steps,
)
from airflow_provider_sparkddp.spec.manifests import PartFile, Share
from tests.support.refusals import refused
from tests.support.samples import manifest, part_file

ROW_GROUPS = st.lists(st.integers(0, 40), max_size=4)
FILES = st.lists(st.builds(part_file, ROW_GROUPS, st.sampled_from(["train", "validation"])), min_size=1, max_size=6)
RANKS = st.integers(1, 8)


def rows_read(shares: Sequence[Share]) -> Counter[tuple[int, int, int]]:
    """(file, row group, row) -> how often it is read."""
    return Counter((p.file, p.row_group, row) for s in shares for p in s for row in range(p.start, p.stop))


def rows_there(files: Sequence[PartFile], split: str) -> set[tuple[int, int, int]]:
    return {
        (index, group, row)
        for index, file in enumerate(files)
        if file.split == split
        for group, rows in enumerate(file.row_groups)
        for row in range(rows)
    }


def total(files: Sequence[PartFile], split: str = "train") -> int:
    return sum(file.rows for file in files if file.split == split)


@given(FILES, RANKS, st.sampled_from(["train", "validation"]))
def test_every_row_is_read_exactly_once_over_the_ranks(files: list[PartFile], world_size: int, split: str) -> None:
    if total(files, split) < world_size:
        with refused("SDDP-202"):
            deal(files, split, world_size)
        return
    shares = deal(files, split, world_size)
    assert len(shares) == world_size
    assert rows_read(shares) == Counter(rows_there(files, split))


@given(FILES, RANKS)
def test_the_ranks_are_balanced_and_none_is_empty(files: list[PartFile], world_size: int) -> None:
    if total(files) < world_size:
        return
    rows = [sum(piece.rows for piece in share) for share in deal(files, "train", world_size)]
    assert min(rows) >= 1
    assert balanced(rows)
    assert all(piece.rows > 0 for share in deal(files, "train", world_size) for piece in share)


@given(FILES, RANKS)
def test_every_rank_computes_the_same_answer(files: list[PartFile], world_size: int) -> None:
    if total(files) >= world_size:
        assert deal(files, "train", world_size) == deal(list(files), "train", world_size)


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=8), st.integers(1, 300))
def test_all_ranks_take_equal_steps_of_batches_that_are_never_empty(rank_rows: list[int], batch_size: int) -> None:
    num_steps = steps(rank_rows, batch_size)
    for rows in rank_rows:
        bounds = batch_bounds(rows, num_steps)
        assert len(bounds) == num_steps
        assert [start for start, _ in bounds] == [0, *(stop for _, stop in bounds[:-1])]
        assert bounds[-1][1] == rows
        sizes = [stop - start for start, stop in bounds]
        assert min(sizes) >= 1
        assert max(sizes) - min(sizes) <= 1


@given(FILES, RANKS, st.integers(1, 300))
def test_no_batch_is_larger_than_asked_for_where_ranks_are_balanced(
    files: list[PartFile], world_size: int, batch_size: int
) -> None:
    if total(files) < world_size:
        return
    rows = [sum(piece.rows for piece in share) for share in deal(files, "train", world_size)]
    num_steps = steps(rows, batch_size)
    largest = max(stop - start for count in rows for start, stop in batch_bounds(count, num_steps))
    # One rank may have too few rows for a step each: then the others' batches grow, and none waits.
    assert largest <= batch_size or num_steps == min(rows)


@pytest.mark.parametrize(
    ("rank_rows", "batch_size", "expected"),
    [([10, 10], 3, 4), ([9, 7], 4, 3), ([1000, 1000], 1024, 1), ([5, 2], 1, 2), ([1], 1, 1)],
)
def test_steps_are_those_of_the_largest_rank(rank_rows: list[int], batch_size: int, expected: int) -> None:
    assert steps(rank_rows, batch_size) == expected


def test_balanced_files_go_whole_to_a_rank_each() -> None:
    files = [part_file([50, 50]), part_file([7], "validation"), part_file([99])]
    shares = deal(files, "train", 2)
    assert [{piece.file for piece in share} for share in shares] == [{0}, {2}]
    assert [[piece.rows for piece in share] for share in shares] == [[50, 50], [99]]


def test_files_that_differ_too_much_are_cut_at_the_boundary() -> None:
    files = [part_file([100]), part_file([10])]
    shares = deal(files, "train", 2)
    assert [[(p.file, p.start, p.stop) for p in share] for share in shares] == [
        [(0, 0, 55)],
        [(0, 55, 100), (1, 0, 10)],
    ]


@pytest.mark.parametrize(
    ("rows", "fair"),
    [
        ([10, 10 + TOLERANCE_ROWS], True),
        ([10, 11 + TOLERANCE_ROWS], False),
        ([100_000, 100_000 + int(100_000 * TOLERANCE)], True),
        ([100_000, 102_000], False),
    ],
)
def test_balanced_means_one_percent_or_eight_rows(rows: list[int], fair: bool) -> None:
    assert balanced(rows) is fair


@pytest.mark.parametrize("split", ["train", "validation"])
def test_fewer_rows_than_ranks_are_refused_with_both_numbers(split: str) -> None:
    with refused("SDDP-202", f"the {split} split has 3 rows for 4 ranks", "Lower num_nodes"):
        deal([part_file([2, 1], split)], split, 4)


def test_a_manifest_is_read_as_it_was_dealt_or_dealt_anew_for_another_number_of_ranks() -> None:
    written = manifest()
    assert shares_for(written, "train", 2) == written.shares["train"]
    for world_size in (1, 3, 9):
        shares = shares_for(written, "train", world_size)
        assert len(shares) == world_size
        assert rows_read(shares) == Counter(rows_there(written.files, "train"))
    with refused("SDDP-202", "9 rows for 10 ranks"):
        shares_for(written, "train", 10)


def binned(rows: dict[int, tuple[int, int]]) -> list[PartFile]:
    """Bin -> rows for training and for validation."""
    files = []
    for place, (train, validation) in rows.items():
        files += [replace(part_file([train], "train"), bin=place)] if train else []
        files += [replace(part_file([validation], "validation"), bin=place)] if validation else []
    return files


def test_as_many_whole_files_a_rank_where_that_is_balanced() -> None:
    files = [part_file([rows]) for rows in (100, 101, 100, 102, 99, 100)]
    assert [[p.file for p in share] for share in deal(files, "train", 3)] == [[0, 1], [2, 3], [4, 5]]


@given(st.dictionaries(st.integers(0, 9), st.tuples(st.integers(1, 50), st.integers(1, 9)), min_size=1), RANKS)
def test_bins_of_groups_go_whole_to_one_rank_with_all_their_splits(
    rows: dict[int, tuple[int, int]], world_size: int
) -> None:
    files = binned(rows)
    if len(rows) < world_size:
        with refused("SDDP-202", "rank"):
            deal(files, "train", world_size)
        return
    ranks: dict[int, set[int]] = {}
    for split in ("train", "validation"):
        shares = deal(files, split, world_size)
        assert rows_read(shares) == Counter(rows_there(files, split))
        for rank, share in enumerate(shares):
            for piece in share:
                ranks.setdefault(files[piece.file].bin or 0, set()).add(rank)
    assert all(len(found) == 1 for found in ranks.values())


def test_bins_that_were_packed_for_the_world_size_follow_one_another() -> None:
    files = binned({0: (5, 1), 1: (90, 0), 2: (40, 1), 3: (41, 0)})
    shares = deal(files, "train", 2, bins_per_rank=2)
    assert [[files[p.file].bin for p in share] for share in shares] == [[0, 1], [2, 3]]


def test_a_rank_whose_bins_hold_no_held_out_row_is_told() -> None:
    with refused("SDDP-202", "the validation split has whole groups in 1 bins for 2 ranks"):
        deal(binned({0: (5, 3), 1: (5, 0)}), "validation", 2, bins_per_rank=1)

"""A rank reads exactly its share, and its loader gives every row once an epoch in an order that a seed decides."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparkddp.runtime.data.dataset import RankLoader, matrix, read_share, sample_rows, tensors
from airflow_provider_sparkddp.runtime.data.shards import deal
from airflow_provider_sparkddp.spec.manifests import Column, Manifest, PartFile, Piece
from tests.support.refusals import refused

COLUMNS = [Column("id", "long"), Column("value", "double"), Column("flag", "boolean")]


def stored(folder: Path, name: str, first: int, row_groups: list[int]) -> PartFile:
    """A Parquet file whose ids count up from `first`."""
    ids = np.arange(first, first + sum(row_groups))
    table = pa.table({"flag": ids % 2 == 0, "value": ids / 2, "id": ids})
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, table.schema) as writer:
        for start, rows in zip(np.cumsum([0, *row_groups]), row_groups, strict=False):
            writer.write_table(table.slice(start, rows))
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    return PartFile(name, "train", sum(row_groups), len(data), digest, tuple(row_groups))


@pytest.fixture
def partitions(tmp_path: Path) -> tuple[Manifest, str]:
    """Two files of two row groups, and a stray one that no manifest knows."""
    files = (stored(tmp_path, "data/a.parquet", 0, [3, 2]), stored(tmp_path, "data/b.parquet", 100, [4, 1]))
    stored(tmp_path, "data/stray.parquet", 900, [5])
    return Manifest(1, 1, 0, tuple(COLUMNS), files, {}, "test"), (tmp_path / "manifest.json").as_uri()


def test_a_share_is_read_piece_by_piece_in_its_order_and_nothing_else(partitions: tuple[Manifest, str]) -> None:
    share = (Piece(0, 0, 1, 3), Piece(0, 1, 0, 2), Piece(1, 0, 2, 4))
    table = read_share(*partitions, share, ["value", "id"])
    assert table.column_names == ["value", "id"]
    assert table.column("id").to_pylist() == [1, 2, 3, 4, 102, 103]


def test_a_file_that_is_gone_is_refused_by_its_name(partitions: tuple[Manifest, str], tmp_path: Path) -> None:
    (tmp_path / "data" / "b.parquet").unlink()
    assert read_share(*partitions, (Piece(0, 0, 0, 3),), ["id"]).num_rows == 3
    with refused("SDDP-209", "data/b.parquet", "missing"):
        read_share(*partitions, (Piece(1, 0, 0, 4),), ["id"])


@pytest.mark.parametrize("change", ["cut", "replaced", "one byte"])
def test_a_file_that_was_changed_is_refused_by_its_name(
    partitions: tuple[Manifest, str], tmp_path: Path, change: str
) -> None:
    path = tmp_path / "data" / "a.parquet"
    data = path.read_bytes()
    other = {"cut": data[:-9], "replaced": (tmp_path / "data" / "b.parquet").read_bytes()}
    path.write_bytes(other.get(change, data[:20] + bytes([data[20] ^ 1]) + data[21:]))
    with refused("SDDP-209", "data/a.parquet", "other bytes"):
        read_share(*partitions, (Piece(0, 0, 0, 3),), ["id"])


def test_columns_stand_side_by_side_in_the_order_asked_for(partitions: tuple[Manifest, str]) -> None:
    table = read_share(*partitions, (Piece(0, 0, 0, 3),), ["id", "value", "flag"])
    x, y = tensors(table, ["flag", "id"], "value", torch.float32)
    assert x.tolist() == [[1, 0], [0, 1], [1, 2]]
    assert y.tolist() == [0, 0.5, 1]
    assert (x.dtype, y.dtype, x.shape, y.shape) == (torch.float32, torch.float32, (3, 2), (3,))
    assert tensors(table, ["id"], "value", torch.float64)[0].dtype == torch.float64


def test_a_matrix_is_one_block_also_when_columns_come_in_chunks() -> None:
    table = pa.concat_tables([pa.table({"a": [1, 2]}), pa.table({"a": [3]})])
    block = matrix(table, ["a", "a"])
    assert block.flags["C_CONTIGUOUS"]
    assert block.tolist() == [[1, 1], [2, 2], [3, 3]]


ENCODERS = {
    "word": {"kind": "index", "values": ["a", "b"]},
    "size": {"kind": "standardize", "mean": 3.0, "std": 2.0, "rows": 4},
}


def test_encoders_and_arrays_make_the_columns_that_they_make() -> None:
    whole = pa.table(
        {
            "word": ["b", "b", None, "x", "a"],
            "pair": [[9, 9], [1, 2], [3, 4], [5, 6], [7, 8]],
            "size": [0, 1, 3, 5, 7],
            "y": [9.0, 1.0, 2.0, 3.0, 4.0],
        }
    )
    # As a share is read: slices of row groups, one after the other.
    table = pa.concat_tables([whole.slice(1, 2), whole.slice(3, 1), whole.slice(4)])
    features = ["pair", "word", "size", "y"]
    x, y = tensors(table, features, "y", torch.float32, ENCODERS)
    assert x.tolist() == [[1, 2, 2, -1, 1], [3, 4, 0, 0, 2], [5, 6, 0, 1, 3], [7, 8, 1, 2, 4]]
    assert (x.is_contiguous(), x.dtype, y.tolist()) == (True, torch.float32, [1, 2, 3, 4])
    assert tensors(table.slice(2), features, "y", torch.float64, ENCODERS)[0].tolist() == x[2:].tolist()
    raw = tensors(table, ["pair"], "size", torch.float32, ENCODERS)[1]
    assert raw.tolist() == [1, 3, 5, 7], "a target is never encoded"


@pytest.mark.parametrize("world_size", range(1, 8))
def test_an_array_column_keeps_its_rows_beside_the_others_wherever_a_piece_begins(
    tmp_path: Path, world_size: int
) -> None:
    ids = list(range(7))
    table = pa.table({"id": ids, "v": [[10.0 * i, 10.0 * i + 1] for i in ids]})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=3)
    data = path.read_bytes()
    file = PartFile("a.parquet", "train", 7, len(data), hashlib.sha256(data).hexdigest(), (3, 3, 1))
    plan = Manifest(1, 1, 0, (), (file,), {}, "test")
    for share in deal([file], "train", world_size):
        read = read_share(plan, (tmp_path / "manifest.json").as_uri(), share, ["v", "id"])
        expected = [[10.0 * i, 10.0 * i + 1, i] for i in read.column("id").to_pylist()]
        assert matrix(read, ["v", "id"]).tolist() == expected


@pytest.mark.parametrize("rows", [[[1, 2], None], [[1, 2], [3]], [[1, 2], [3, None]]], ids=str)
def test_arrays_that_are_not_of_one_length_are_refused_by_name(rows: list[Any]) -> None:
    with refused("SDDP-205", "column 'v'"):
        matrix(pa.table({"v": rows}), ["v"])


def loader(rows: int, num_steps: int, seed: int | None = 5, rank: int = 0, epoch: int = 0) -> RankLoader:
    """Over rows that are their own number."""
    numbers = torch.arange(rows)
    made = RankLoader(numbers.reshape(-1, 1), numbers, num_steps, seed, rank)
    made.sampler.set_epoch(epoch)  # as Lightning calls it
    return made


def order(made: RankLoader) -> list[int]:
    return torch.cat([y for _, y in made]).tolist()


SIZES = st.integers(1, 60).flatmap(lambda rows: st.tuples(st.just(rows), st.integers(1, rows)))


@given(SIZES, st.none() | st.integers(0, 2**31), st.integers(0, 9), st.integers(0, 9))
def test_an_epoch_holds_every_row_once_in_batches_that_are_never_empty(
    sizes: tuple[int, int], seed: int | None, rank: int, epoch: int
) -> None:
    rows, num_steps = sizes
    made = loader(rows, num_steps, seed, rank, epoch)
    batches = list(made)
    assert len(batches) == len(made) == num_steps
    assert min(len(y) for _, y in batches) >= 1
    assert all(torch.equal(x[:, 0], y) for x, y in batches), "x and y of a row stay together"
    assert sorted(order(made)) == list(range(rows))


def test_the_same_seed_rank_and_epoch_give_the_same_order() -> None:
    assert order(loader(50, 7)) == order(loader(50, 7))


@pytest.mark.parametrize("change", [{"epoch": 1}, {"seed": 6}, {"rank": 1}], ids=str)
def test_another_epoch_seed_or_rank_gives_another_order(change: dict[str, int]) -> None:
    assert order(loader(50, 7)) != order(loader(50, 7, **change))


def test_without_a_seed_the_rows_keep_their_order_in_every_epoch() -> None:
    assert order(loader(50, 7, seed=None, epoch=3)) == list(range(50))


def test_the_order_does_not_depend_on_what_else_draws_random_numbers() -> None:
    torch.manual_seed(1)
    first = order(loader(50, 7))
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert order(loader(50, 7)) == first
    assert torch.equal(torch.get_rng_state(), before), "nor does it draw from them"


@pytest.mark.parametrize(("rows", "limit", "expected"), [(3, 5, [0, 1, 2]), (9, 3, [0, 4, 8]), (5, 5, [0, 1, 2, 3, 4])])
def test_a_sample_is_spread_over_all_rows(rows: int, limit: int, expected: list[int]) -> None:
    assert sample_rows(torch.arange(rows), limit).tolist() == expected

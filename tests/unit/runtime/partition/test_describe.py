"""What a file tells: counts, extremes, moments and categories, whatever the pieces; dates that nothing else could hold."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparkddp.runtime.partition import describe
from airflow_provider_sparkddp.spec.manifests import Column
from tests.support.refusals import refused

DOUBLE = Column("x", "double")


def described(folder: Path, table: pa.Table, facts: Column, group: int = 2, training: bool = True) -> Column:
    path = folder / "part.parquet"
    pq.write_table(table, path, row_group_size=group)
    found, _ = describe.parquet_file(path.as_uri(), {facts.name: facts}, {}, training)
    assert sum(found["row_groups"]) == table.num_rows
    return describe.column(facts, describe.merged([found["columns"][facts.name]]))


def test_nulls_nan_and_infinities_are_counted_apart(tmp_path: Path) -> None:
    values = [1.0, None, math.nan, math.inf, -math.inf, 3.0, None, 5.0]
    found = described(tmp_path, pa.table({"x": values}), DOUBLE)
    assert (found.nulls, found.nans, found.infinities) == (2, 1, 2)
    assert (found.minimum, found.maximum, found.mean) == (1.0, 5.0, 3.0)
    assert found.std == pytest.approx(math.sqrt(8 / 3))


def test_the_largest_numbers_are_finite_although_their_sum_is_not(tmp_path: Path) -> None:
    found = described(tmp_path, pa.table({"x": [1.7e308, 1.7e308]}), DOUBLE)
    assert (found.nans, found.infinities, found.maximum) == (0, 0, 1.7e308)
    assert (found.mean, found.std) == (None, None), "JSON has no infinity"


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.integers(1, 10))
def test_moments_of_pieces_are_those_of_the_whole(values: list[float], size: int) -> None:
    pieces = [pa.chunked_array([values[i : i + size]]) for i in range(0, len(values), size)]
    found = describe.column(
        DOUBLE, describe.merged([describe.column_stats(piece, DOUBLE, training=True) for piece in pieces])
    )
    assert found.mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-9)
    assert found.std == pytest.approx(np.std(values), rel=1e-6, abs=1e-6)


def test_a_large_mean_does_not_drown_the_deviation(tmp_path: Path) -> None:
    found = described(tmp_path, pa.table({"x": 1e9 + np.arange(1000) % 2}), DOUBLE, group=64)
    assert found.std == pytest.approx(0.5, rel=1e-9)


def test_rows_that_are_held_out_tell_no_moments_and_no_categories(tmp_path: Path) -> None:
    found = described(tmp_path, pa.table({"x": [1.0, 2.0]}), DOUBLE, training=False)
    assert (found.maximum, found.mean, found.std) == (2.0, None, None)
    text = described(tmp_path, pa.table({"c": ["a", "b"]}), Column("c", "string"), training=False)
    assert text.categories == ()


def test_a_column_of_nulls_alone_has_no_extremes(tmp_path: Path) -> None:
    found = described(tmp_path, pa.table({"x": pa.array([None, None], pa.float64())}), DOUBLE)
    assert (found.nulls, found.minimum, found.mean) == (2, None, None)


@pytest.mark.parametrize(("number", "known"), [(1000, True), (1001, False)])
def test_categories_are_kept_up_to_a_bound(number: int, known: bool, tmp_path: Path) -> None:
    names = [f"c{place:05d}" for place in range(number)]
    found = described(tmp_path, pa.table({"c": names * 2}), Column("c", "string"), group=300)
    assert found.categories == (tuple(names) if known else None)


def test_booleans_are_numbers(tmp_path: Path) -> None:
    found = described(tmp_path, pa.table({"b": [True, False, None, True]}), Column("b", "boolean"))
    assert (found.nulls, found.minimum, found.maximum) == (1, 0, 1)
    assert found.mean == pytest.approx(2 / 3)


def test_rows_of_an_array_count_once_for_what_they_hold(tmp_path: Path) -> None:
    rows = [[1.0, 2.0], [math.nan, math.nan], None, [math.inf, 4.0]]
    table = pa.table({"a": pa.array(rows, pa.list_(pa.float32()))})
    found = described(tmp_path, table, Column("a", "array", element="float", length=2))
    assert (found.nulls, found.nans, found.infinities) == (1, 1, 1)
    assert (found.minimum, found.maximum, found.element, found.length) == (1.0, 4.0, "float", 2)


def test_dates_and_timestamps_are_told_as_iso_text(tmp_path: Path) -> None:
    days = pa.table({"d": [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]})
    found = described(tmp_path, days, Column("d", "date"))
    assert (found.minimum, found.maximum, found.nulls) == ("0001-01-01", "9999-12-31", 1)
    at = pa.table({"t": pa.array([0, 253402300799999999], pa.timestamp("us", tz="UTC"))})
    found = described(tmp_path, at, Column("t", "timestamp"))
    assert (found.minimum, found.maximum) == ("1970-01-01T00:00:00+00:00", "9999-12-31T23:59:59.999999+00:00")


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([2932897], pa.date32()), "date"),
        (pa.array([-719163], pa.date32()), "date"),
        (pa.array([253402300800000000], pa.timestamp("us", tz="UTC")), "timestamp"),
    ],
)
def test_dates_outside_of_the_years_1_to_9999_are_refused_by_name(array: Any, kind: str, tmp_path: Path) -> None:
    with refused("SDDP-210", "'d'"):
        described(tmp_path, pa.table({"d": array}), Column("d", kind))


def test_a_file_that_is_not_there_is_told_as_storage_that_is_not_shared(tmp_path: Path) -> None:
    with refused("SDDP-302", "nowhere.parquet"):
        describe.parquet_file((tmp_path / "nowhere.parquet").as_uri(), {}, {}, True)


def test_the_hash_and_the_size_are_those_of_the_bytes(tmp_path: Path) -> None:
    import hashlib

    path = tmp_path / "part.parquet"
    pq.write_table(pa.table({"x": [1.0]}), path)
    found, _ = describe.parquet_file(path.as_uri(), {"x": DOUBLE}, {}, True)
    assert found["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found["bytes"] == path.stat().st_size


def test_what_encoders_learn_comes_from_training_files_alone(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    pq.write_table(pa.table({"c": ["b", "a", None, "b"]}), path, row_group_size=1)
    types = {"c": Column("c", "string")}
    _, fits = describe.parquet_file(path.as_uri(), types, {"c": "index"}, True)
    assert fits["c"]["values"] == ["a", "b"]
    assert describe.parquet_file(path.as_uri(), types, {"c": "index"}, False)[1] == {}

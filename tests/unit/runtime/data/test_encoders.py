"""Encoders: a fit is equal bit for bit however the rows are cut and ordered, and is what exact arithmetic gives."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_sparkddp.runtime.data import encoders
from airflow_provider_sparkddp.runtime.data.encoders import (
    BLOCK_BITS,
    INDEX,
    STANDARDIZE,
    encoded,
    encoder,
    fit_piece,
    merge_fits,
    require_encodable,
    require_fit,
    width,
)
from tests.support.refusals import refused

NUMBERS = st.floats(-1e150, 1e150) | st.floats(-10, 10) | st.sampled_from([5e-324, -1e-200, 1e-146, 2.0**-480])
HOLES = st.sampled_from([None, math.nan, math.inf, -math.inf])
TEXTS = st.text(max_size=4)


def cut(rows: Sequence[Any], kind: pa.DataType, seed: int) -> list[pa.ChunkedArray]:
    """The rows in another order, as pieces of several chunks; some of the pieces and chunks are empty."""
    chance = random.Random(seed)
    rows = chance.sample(list(rows), len(rows))
    bounds = sorted(chance.choices(range(len(rows) + 1), k=6))
    chunks = [pa.array(rows[a:b], kind) for a, b in zip([0, *bounds], [*bounds, len(rows)], strict=True)]
    at = chance.randrange(len(chunks))
    return [pa.chunked_array(part, kind) for part in (chunks[:at], chunks[at:])]


def fitted(kind: str, pieces: Sequence[pa.ChunkedArray]) -> dict[str, Any]:
    """As a job does it: each piece's fit travels as JSON."""
    return merge_fits(kind, [json.loads(json.dumps(fit_piece(kind, piece), allow_nan=False)) for piece in pieces])


def column(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


class TestStandardize:
    @given(st.lists(NUMBERS | HOLES, max_size=60), st.integers(0, 2**32))
    @example([1.0, math.nan, None, math.inf], 0)
    def test_a_fit_is_the_same_for_any_cut_and_order_and_is_exact(self, rows: list[Any], seed: int) -> None:
        fit = fitted(STANDARDIZE, cut(rows, pa.float64(), seed))
        assert (
            fit
            == fitted(STANDARDIZE, cut(rows, pa.float64(), seed + 1))
            == fit_piece(STANDARDIZE, column(rows, pa.float64()))
        )
        finite = [Fraction(v) for v in rows if v is not None and math.isfinite(v)]
        assert fit["rows"] == len(finite)
        assert Fraction(fit["sum"]) == sum(finite)
        assert Fraction(fit["squares"]) == sum(v * v for v in finite)

    @given(st.lists(NUMBERS, min_size=1, max_size=30))
    @example([0.1] * 3)
    @example([1.0, 1.0 + 2**-52])
    def test_mean_and_std_are_rounded_once(self, rows: list[float]) -> None:
        made = encoder("c", STANDARDIZE, fit_piece(STANDARDIZE, column(rows)))
        exact = [Fraction(v) for v in rows]
        mean = sum(exact) / len(exact)
        assert made["mean"] == float(mean)
        variance = sum((v - mean) ** 2 for v in exact) / len(exact)
        assert_nearest_root(made["std"], variance)
        assert made["rows"] == len(rows)

    @pytest.mark.parametrize("rows", [1, 2**BLOCK_BITS - 1, 2**BLOCK_BITS, 3 * 2**BLOCK_BITS + 7])
    def test_a_spread_of_a_thousandth_at_a_thousand_millions(self, rows: int) -> None:
        values = np.random.default_rng(rows).normal(1e9, 1e-3, rows)
        made = encoder("c", STANDARDIZE, fit_piece(STANDARDIZE, column(values)))
        assert made["mean"] == float(statistics.mean(map(Fraction, values.tolist())))
        assert made["std"] == (statistics.pstdev(values.tolist()) or 1.0)

    @pytest.mark.parametrize(
        "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()], ids=str
    )
    def test_all_types_of_numbers(self, kind: pa.DataType) -> None:
        made = encoder("c", STANDARDIZE, fit_piece(STANDARDIZE, column([2, 4, 4, 4, 5, 5, 7, 9], kind)))
        assert made == {"kind": STANDARDIZE, "mean": 5.0, "std": 2.0, "rows": 8}

    def test_integers_that_a_double_rounds_are_taken_as_it_rounds_them(self) -> None:
        ids = column([2**62 + 1, 2**62 + 2049])
        made = encoder("c", STANDARDIZE, fit_piece(STANDARDIZE, ids))
        assert encoded(ids, made, np.float32).tolist() == [-1, 1]

    def test_a_constant_column_becomes_zero(self) -> None:
        constant = column([0.1] * 7)
        made = encoder("c", STANDARDIZE, fit_piece(STANDARDIZE, constant))
        assert made == {"kind": STANDARDIZE, "mean": 0.1, "std": 1.0, "rows": 7}
        assert encoded(constant, made, np.float32).tolist() == [0.0] * 7

    def test_it_is_applied_in_float64_and_rounded_once(self) -> None:
        values = np.random.default_rng(0).normal(1e9, 1e-3, 1000)
        made = encoder("c", STANDARDIZE, fit_piece(STANDARDIZE, column(values)))
        out = encoded(column(values), made, np.float32)
        assert out.dtype == np.float32
        np.testing.assert_array_equal(out, ((values - made["mean"]) / made["std"]).astype(np.float32))
        assert abs(out.mean()) < 1e-3
        assert abs(out.std() - 1) < 1e-3

    @pytest.mark.parametrize("rows", [[], [None, None], [math.nan, math.inf]], ids=str)
    def test_a_column_without_a_number_is_refused_by_its_name(self, rows: list[Any]) -> None:
        with refused("SDDP-213", "encode['delay']", "no finite number"):
            encoder("delay", STANDARDIZE, fit_piece(STANDARDIZE, column(rows, pa.float64())))

    def test_a_number_whose_square_is_no_double_is_refused_for_any_cut(self) -> None:
        rows = [1.0, -1.5e150, 1e300, 2.0]
        fits = [fitted(STANDARDIZE, cut(rows, pa.float64(), seed)) for seed in range(8)]
        for fit in fits:
            with refused("SDDP-213", "'c'", "1e+300"):
                encoder("c", STANDARDIZE, fit)
        with refused("SDDP-213", "'c'"):
            require_fit("c", STANDARDIZE, fit_piece(STANDARDIZE, column(rows)))
        require_fit("c", STANDARDIZE, fit_piece(STANDARDIZE, column([1e150])))


def assert_nearest_root(found: float, square: Fraction) -> None:
    """The true root lies between the midpoints to the double's neighbours; 1.0 stands for a root that rounds to 0."""
    smallest = Fraction(5e-324)
    if square * 4 <= smallest**2:
        assert found == 1.0
        return
    below, above = (Fraction(math.nextafter(found, to)) for to in (0.0, math.inf))
    assert ((Fraction(found) + below) / 2) ** 2 <= square <= ((Fraction(found) + above) / 2) ** 2


class TestIndex:
    @given(st.lists(TEXTS | st.none(), max_size=60), st.integers(0, 2**32))
    def test_a_fit_is_the_same_for_any_cut_and_order(self, rows: list[Any], seed: int) -> None:
        fit = fitted(INDEX, cut(rows, pa.string(), seed))
        assert fit == {"values": sorted({v for v in rows if v is not None})}

    @given(st.lists(TEXTS, min_size=1, max_size=20), st.lists(TEXTS | st.none(), max_size=20))
    def test_a_value_becomes_its_place_and_an_unknown_or_null_becomes_zero(
        self, known: list[str], rows: list[Any]
    ) -> None:
        made = encoder("c", INDEX, fit_piece(INDEX, column(known)))
        places = {value: place for place, value in enumerate(sorted(set(known)), 1)}
        assert encoded(column(rows, pa.string()), made, np.float64).tolist() == [places.get(v, 0) for v in rows]

    @pytest.mark.parametrize(
        "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str
    )
    def test_however_arrow_holds_the_text(self, kind: pa.DataType) -> None:
        rows = pa.chunked_array([pa.array(["z", "b", None, "b"]).cast(kind), pa.array(["ä"]).cast(kind)]).slice(1)
        made = encoder("c", INDEX, fit_piece(INDEX, rows))
        assert made == {"kind": INDEX, "values": ["b", "ä"]}
        assert encoded(rows, made, np.float32).tolist() == [1, 0, 1, 2]

    def test_the_empty_text_is_a_value_and_a_column_of_nulls_is_unknown(self) -> None:
        made = encoder("c", INDEX, fit_piece(INDEX, column(["", "a"])))
        assert encoded(column(["", None]), made, np.float32).tolist() == [1, 0]
        assert encoded(column([None, None]), made, np.float32).tolist() == [0, 0]

    def test_too_many_values_end_the_fit_early_and_small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(encoders, "MAX_VALUES", 5)
        pieces = [column([f"{n}" for n in range(start, start + 4)]) for start in (0, 2, 4)]
        assert len(fitted(INDEX, pieces[:1])["values"]) == 4
        for parts in (pieces, [column([f"{n}" for n in range(9)])]):
            fit = fitted(INDEX, parts)
            assert fit["values"] is None
            with refused("SDDP-213", "encode['city']", "more than 5 different values"):
                require_fit("city", INDEX, fit)
            with refused("SDDP-213", "'city'"):
                encoder("city", INDEX, merge_fits(INDEX, [fit, fitted(INDEX, pieces[:1])]))

    def test_values_that_are_too_long_in_all_end_it_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(encoders, "MAX_BYTES", 2**20)
        with refused("SDDP-213", "1 MiB of different values"):
            encoder("c", INDEX, fitted(INDEX, [column(["é" * 2**18, "a" * 2**18]), column(["b" * 2**18 + "c"])]))

    def test_the_bounds(self) -> None:
        require_fit("c", INDEX, fit_piece(INDEX, column([str(n) for n in range(encoders.MAX_VALUES)])))
        with refused("SDDP-213", "more than 100,000"):
            require_fit("c", INDEX, fit_piece(INDEX, column([str(n) for n in range(encoders.MAX_VALUES + 1)])))

    def test_bytes_that_are_no_text_are_refused(self) -> None:
        bad = pa.Array.from_buffers(pa.string(), 1, [None, *pa.array([b"\xff\xfe"]).buffers()[1:]])
        with refused("SDDP-213", "not UTF-8", r"\xff\xfe"):
            require_fit("c", INDEX, fitted(INDEX, [column(["a"]), pa.chunked_array([bad])]))

    def test_a_column_without_a_value_is_refused_by_its_name(self) -> None:
        with refused("SDDP-213", "encode['city']", "no value"):
            encoder("city", INDEX, fit_piece(INDEX, column([None], pa.string())))


@pytest.mark.parametrize("kind", [INDEX, STANDARDIZE])
def test_the_fit_of_no_pieces_is_that_of_no_rows(kind: str) -> None:
    none = fit_piece(kind, column([], pa.string() if kind == INDEX else pa.float64()))
    assert merge_fits(kind, []) == none


@pytest.mark.parametrize(
    ("kind", "type_name", "fits"),
    [
        ("index", "string", True),
        ("index", "long", False),
        ("index", "date", False),
        ("standardize", "double", True),
        ("standardize", "byte", True),
        ("standardize", "boolean", False),
        ("standardize", "string", False),
        ("standardize", "array", False),
    ],
)
def test_what_can_be_encoded_is_known_by_its_type(kind: str, type_name: str, fits: bool) -> None:
    if fits:
        require_encodable("c", kind, type_name)
    else:
        with refused("SDDP-213", "encode['c']", type_name):
            require_encodable("c", kind, type_name)


@pytest.mark.parametrize(
    ("kind", "rows"), [(INDEX, [1]), (STANDARDIZE, ["a"]), (STANDARDIZE, [True]), (STANDARDIZE, [[1]])]
)
def test_values_of_another_type_are_not_fitted(kind: str, rows: list[Any]) -> None:
    with refused("SDDP-213", kind):
        fit_piece(kind, column(rows))


@pytest.mark.parametrize(
    ("rows", "kind"),
    [([1, 2], pa.int64()), ([0.5, 1], pa.float32()), ([True, False], pa.bool_()), ([1, 2], pa.uint8())],
)
def test_numbers_without_an_encoder_are_cast(rows: list[Any], kind: pa.DataType) -> None:
    out = encoded(column(rows, kind), None, np.float32)
    assert (out.dtype, out.tolist()) == (np.float32, [float(v) for v in rows])


LISTS = [pa.list_(pa.int32()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 2)]


@pytest.mark.parametrize("kind", LISTS, ids=str)
class TestArrays:
    def test_each_row_has_its_own_numbers_wherever_the_slice_begins(self, kind: pa.DataType) -> None:
        rows = [[0, 1], [1, 1], [1, 0], [0, 0], [1, 1]]
        whole = pa.chunked_array([pa.array(rows[:3], kind).slice(1), pa.array(rows[3:], kind)])
        for start in range(4):
            for length in range(1, 5 - start):
                part = whole.slice(start, length)
                assert width(part) == 2
                assert encoded(part, None, np.float32).tolist() == rows[1:][start : start + length]

    def test_a_null_row_is_refused_and_not_dropped(self, kind: pa.DataType) -> None:
        rows = column([[0, 1], None, [1, 1]], kind)
        with pytest.raises(ValueError, match="1 null rows"):
            encoded(rows, None, np.float32)
        assert encoded(rows.slice(2), None, np.float32).tolist() == [[1, 1]]

    def test_a_null_number_is_refused(self, kind: pa.DataType) -> None:
        with pytest.raises(ValueError, match="1 of the numbers"):
            encoded(column([[0, 1], [None, 1]], kind), None, np.float32)


@pytest.mark.parametrize("rows", [[[1, 2], [3]], [[1], [2, 3], [4, 5, 6]], [[], [1]]], ids=str)
def test_rows_of_unequal_lengths_are_refused(rows: list[Any]) -> None:
    with pytest.raises(ValueError, match="its rows hold from"):
        encoded(column(rows), None, np.float32)
    with pytest.raises(ValueError, match="its rows hold from"):
        width(column(rows))


def test_flags_in_rows_are_numbers() -> None:
    assert encoded(column([[True, False], [True, True]]), None, np.float32).tolist() == [[1, 0], [1, 1]]

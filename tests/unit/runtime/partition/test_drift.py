"""Drift between an earlier manifest and new columns: what is found, what fails a gate, and what a person reads."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparkddp.runtime.partition import drift
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import Column, Manifest


def manifest(*columns: Column) -> Manifest:
    return Manifest(1, 1, 0, columns, (), {}, "table flights")


def compare(earlier: Manifest, now: Sequence[Column]) -> drift.Drift:
    return drift.compare(earlier, "s3://lake/manifest.json", now)


def double(name: str = "x", mean: float | None = 10.0, std: float | None = 2.0) -> Column:
    return Column(name, "double", mean=mean, std=std)


def text(name: str, *categories: str) -> Column:
    return Column(name, "string", categories=tuple(categories))


def shift(old: Column, new: Column) -> float | None:
    return compare(manifest(old), [new]).mean_shifts.get("x")


def test_columns_that_came_went_or_changed_their_type_are_told() -> None:
    earlier = manifest(double("a"), double("b"), Column("v", "array", element="double", length=3))
    now = [Column("b", "int", mean=10.0, std=2.0), Column("v", "array", element="double", length=4), double("c")]
    found = compare(earlier, now)
    assert (found.added, found.missing) == (("c",), ("a",))
    assert found.retyped == {"b": ("double", "int"), "v": ("array<double>[3]", "array<double>[4]")}


def test_a_mean_s_shift_is_in_units_of_the_earlier_std() -> None:
    assert shift(double(), double(mean=13.0, std=99.0)) == 1.5
    assert shift(double(), double(mean=5.0)) == -2.5
    assert shift(double(), double()) == 0.0


def test_a_column_that_was_constant_shifts_infinitely_but_not_by_rounding() -> None:
    assert shift(double(std=0.0), double(mean=9.0)) == -math.inf
    assert shift(double(mean=0.1, std=0.0), double(mean=0.1 + 1e-16)) == 0.0
    assert shift(double(mean=0.1, std=1e-17), double(mean=0.1 + 1e-16)) == 0.0


def test_numbers_on_one_side_alone_are_an_infinite_shift_and_on_none_no_shift() -> None:
    assert shift(double(), double(mean=None, std=None)) == math.inf
    assert shift(double(mean=None, std=None), double()) == math.inf
    assert shift(double(mean=None, std=None), double(mean=None, std=None)) is None
    assert shift(double(std=None), double(mean=11.0)) is None


def test_a_column_that_is_no_number_any_more_has_no_shift() -> None:
    found = compare(manifest(double()), [text("x", "a")])
    assert (dict(found.mean_shifts), found.retyped) == ({}, {"x": ("double", "string")})


def test_categories_need_both_sides() -> None:
    earlier = manifest(text("a", "x", "y"), Column("b", "string"), text("c", "x"), text("d", "x", "y"))
    now = [text("a", "z", "y", "w"), text("b", "x"), Column("c", "string"), text("d", "x")]
    assert compare(earlier, now).new_categories == {"a": ("w", "z"), "c": None}


CHANGED = compare(
    manifest(double("gone"), double("kind"), text("who", "a"), double("far"), double("near"), double("still", std=0.0)),
    [
        Column("kind", "int", mean=10.0),
        text("who", "a", "b", "c"),
        double("far", mean=20.0),
        double("near", mean=11.0),
        double("still", mean=11.0),
        double("new"),
    ],
)


@pytest.mark.parametrize(
    ("gates", "words"),
    [
        (
            {"schema": True},
            ["1 columns added: new", "1 columns missing: gone", "1 columns retyped: kind (double -> int)"],
        ),
        ({"new_categories": True}, ["new_categories: 'who' has 2: 'b', 'c'"]),
        ({"max_mean_shift": 1.0}, ["max_mean_shift=1: 'still' +inf, 'far' +5"]),
        ({"max_mean_shift": 0.0}, ["'near' +0.5"]),
        ({"schema": True, "new_categories": True, "max_mean_shift": 3.0}, ["columns added", "'who'", "'far' +5"]),
    ],
)
def test_gates_that_fail_are_named_with_their_figures(gates: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(SparkDDPError) as caught:
        drift.require(CHANGED, gates)
    assert caught.value.code == "SDDP-211"
    assert "compared with s3://lake/manifest.json (table flights)" in caught.value.message
    for each in words:
        assert each in caught.value.message
    assert caught.value.details["drift"] == CHANGED.to_json()


@pytest.mark.parametrize(
    "gates", [{}, {"schema": False, "new_categories": False}, {"max_mean_shift": math.inf}, {"max_mean_shift": None}]
)
def test_what_no_gate_refuses_passes(gates: dict[str, Any]) -> None:
    drift.require(CHANGED, gates)


def test_categories_that_became_too_many_to_list_fail_the_gate() -> None:
    found = compare(manifest(text("c", "x")), [Column("c", "string")])
    with pytest.raises(SparkDDPError, match="'c' has more than can be listed"):
        drift.require(found, {"new_categories": True})


def test_a_gate_of_a_shift_is_passed_by_a_shift_as_large() -> None:
    drift.require(compare(manifest(double()), [double(mean=14.0)]), {"max_mean_shift": 2.0})


def test_the_log_shows_what_differs_in_kind_first_and_then_the_largest() -> None:
    assert CHANGED.lines() == [
        "drift against s3://lake/manifest.json (table flights):",
        "new    added",
        "gone   missing",
        "kind   retyped         double -> int",
        "who    new categories  2: 'b', 'c'",
        "still  mean            +inf std",
        "far    mean            +5 std",
        "near   mean            +0.5 std",
    ]
    assert compare(manifest(double()), [double()]).lines() == [
        "drift against s3://lake/manifest.json (table flights): none"
    ]


def test_what_is_shown_and_sent_is_bounded() -> None:
    names = [f"column_{i:04}" for i in range(3000)]
    earlier = manifest(*(double(name) for name in names), text("who"))
    now = [*(double(name, mean=float(i)) for i, name in enumerate(names)), text("who", *map(str, range(3000)))]
    found = compare(earlier, now)
    lines = found.lines()
    assert len(lines) == drift.MOST_LINES + 2
    assert lines[1].startswith("who")
    assert lines[2].startswith("column_2999")
    assert lines[-1] == f"… and {3000 - drift.MOST_LINES:,} more"
    assert len(json.dumps(found.to_json())) < 10_000
    assert found.to_json()["new_categories"]["who"]["count"] == 3000
    with pytest.raises(SparkDDPError) as caught:
        drift.require(found, {"new_categories": True, "max_mean_shift": 1})
    assert len(caught.value.message) < 1000


numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@given(numbers, st.none() | st.floats(0, allow_nan=False, allow_infinity=False), numbers)
def test_json_is_finite_and_keeps_the_order_of_the_gates(
    mean: float | None, std: float | None, now: float | None
) -> None:
    found = compare(manifest(double(mean=mean, std=std)), [double(mean=now)])
    sent = json.loads(json.dumps(found.to_json(), allow_nan=False))["mean_shifts"]
    assert sent.keys() == found.mean_shifts.keys()
    for name, value in sent.items():
        assert math.copysign(1, value) == math.copysign(1, found.mean_shifts[name])
        assert (abs(value) == drift.INFINITE) == (abs(found.mean_shifts[name]) >= drift.INFINITE)

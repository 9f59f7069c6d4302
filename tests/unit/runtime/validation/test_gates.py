"""A gate lets through what is good enough, and nothing that can't be told."""

from __future__ import annotations

import math
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.validation.gates import gate_checks

NAN, INF = math.nan, math.inf


def passes(value: float, gate: dict[str, Any], baseline: float | None = None) -> list[bool]:
    return [check.passed for check in gate_checks("mae", value, gate, baseline)]


@pytest.mark.parametrize(
    ("value", "gate", "passed"),
    [
        (30.0, {"max": 30}, True),
        (30.0001, {"max": 30}, False),
        (-1.0, {"max": 0}, True),
        (0.8, {"min": 0.8}, True),
        (0.7999, {"min": 0.8}, False),
        (INF, {"min": 0.8}, True),
        (INF, {"max": 1e308}, False),
        (-INF, {"min": -1e308}, False),
    ],
)
def test_bounds_are_part_of_what_passes(value: float, gate: dict[str, Any], passed: bool) -> None:
    assert passes(value, gate) == [passed]


@pytest.mark.parametrize(
    ("value", "baseline", "passed"),
    [
        (9.8, 10.0, True),
        (9.81, 10.0, False),
        (0.0, 10.0, True),
        (0.001, 0.0, False),
        (0.0, 0.0, True),
        (1.0, INF, True),
        (INF, INF, True),
    ],
    ids=["at the bound", "above", "perfect", "baseline perfect", "both perfect", "baseline without bound", "both so"],
)
def test_a_ratio_is_held_against_the_baseline(value: float, baseline: float, passed: bool) -> None:
    assert passes(value, {"max_ratio": 0.98, "baseline": "dep_delay"}, baseline) == [passed]


@pytest.mark.parametrize(
    ("value", "gate", "baseline"),
    [
        (NAN, {"max": INF}, None),
        (NAN, {"min": -INF}, None),
        (NAN, {"max_ratio": 1e9, "baseline": "b"}, 1.0),
        (1.0, {"max_ratio": 1e9, "baseline": "b"}, NAN),
        (NAN, {"max_ratio": 1e9, "baseline": "b"}, NAN),
        (NAN, {"max_ratio": 1e9, "baseline": "b"}, 0.0),
    ],
)
def test_nan_passes_no_gate(value: float, gate: dict[str, Any], baseline: float | None) -> None:
    assert passes(value, gate, baseline) == [False]


def test_each_bound_is_a_check_of_its_own() -> None:
    gate = {"max": 10, "min": 5, "max_ratio": 0.5, "baseline": "b"}
    checks = gate_checks("mae", 7.0, gate, 10.0)
    assert [(check.name, check.passed) for check in checks] == [
        ("mae <= 10", True),
        ("mae >= 5", True),
        ("mae <= 0.5 x the baseline's", False),
    ]
    assert [check.detail for check in checks] == ["7", "7", "7 against 10, ratio 0.7000"]


def test_a_gate_that_needs_a_baseline_is_not_skipped() -> None:
    """Arguments without a baseline are refused long before; this is what would happen otherwise."""
    assert passes(1.0, {"max_ratio": 0.5}, 0.0) == [False]

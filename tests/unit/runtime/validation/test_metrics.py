"""Metrics are what a textbook says, computed here by hand."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparkddp.runtime.validation.metrics import METRICS
from airflow_provider_sparkddp.spec.checks.models import METRICS as METRICS_ALLOWED

TARGET = np.array([3.0, -1.0, 4.0, 1.5])
PREDICTED = np.array([2.0, 1.0, 4.0, 1.0])


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("mae", 3.5 / 4),
        ("mse", 5.25 / 4),
        ("rmse", math.sqrt(5.25 / 4)),
        ("median_ae", 0.75),
        ("r2", 1 - 5.25 / 14.1875),
    ],
)
def test_each_metric_has_its_value_of_the_textbook(metric: str, value: float) -> None:
    assert METRICS[metric](TARGET, PREDICTED) == pytest.approx(value, rel=1e-12)


def test_the_metrics_are_those_that_a_dag_may_name() -> None:
    assert set(METRICS) == set(METRICS_ALLOWED)


numbers = st.floats(-1e6, 1e6, width=32)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=40))
def test_metrics_agree_with_sums_over_single_rows(rows: list[tuple[float, float]]) -> None:
    target, predicted = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    errors = [abs(p - t) for t, p in rows]
    squares = [error * error for error in errors]
    found = {name: metric(target, predicted) for name, metric in METRICS.items()}
    assert found["mae"] == pytest.approx(math.fsum(errors) / len(rows))
    assert found["mse"] == pytest.approx(math.fsum(squares) / len(rows))
    assert found["rmse"] == pytest.approx(math.sqrt(math.fsum(squares) / len(rows)))
    assert found["median_ae"] == pytest.approx(statistics.median(errors))


def test_a_perfect_prediction_has_no_error() -> None:
    assert {name: metric(TARGET, TARGET) for name, metric in METRICS.items()} == {
        "mae": 0.0,
        "mse": 0.0,
        "rmse": 0.0,
        "median_ae": 0.0,
        "r2": 1.0,
    }


def test_predicting_the_mean_explains_nothing() -> None:
    assert METRICS["r2"](TARGET, np.full(4, TARGET.mean())) == pytest.approx(0.0)


def test_a_constant_target_leaves_nothing_to_explain() -> None:
    assert math.isnan(METRICS["r2"](np.ones(3), np.array([1.0, 1.0, 2.0])))


@pytest.mark.parametrize("metric", METRICS)
def test_one_nan_makes_the_metric_nan(metric: str) -> None:
    assert math.isnan(METRICS[metric](TARGET, np.array([2.0, math.nan, 4.0, 1.0])))

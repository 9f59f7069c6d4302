"""Metrics of predictions against targets: pure functions of two arrays of shape (rows,)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def mae(target: Any, predicted: Any) -> float:
    return float(np.mean(np.abs(predicted - target)))


def mse(target: Any, predicted: Any) -> float:
    return float(np.mean(np.square(predicted - target)))


def rmse(target: Any, predicted: Any) -> float:
    return float(np.sqrt(mse(target, predicted)))


def median_ae(target: Any, predicted: Any) -> float:
    return float(np.median(np.abs(predicted - target)))


def r2(target: Any, predicted: Any) -> float:
    """Coefficient of determination; NaN when the target is constant, which fails every gate."""
    spread = float(np.sum(np.square(target - np.mean(target))))
    return float("nan") if spread == 0 else 1.0 - float(np.sum(np.square(predicted - target))) / spread


METRICS: dict[str, Callable[[Any, Any], float]] = {
    "mae": mae,
    "mse": mse,
    "rmse": rmse,
    "median_ae": median_ae,
    "r2": r2,
}

"""Whether a figure passes its gate. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """One check of a validation: its name, whether it passed, and the figures, in words."""

    name: str
    passed: bool
    detail: str


def gate_checks(metric: str, value: float, gate: Mapping[str, Any], baseline: float | None) -> list[Check]:
    """A check for each bound of the gate. NaN passes none.

    Args:
        baseline: the same metric of the baseline; needed when the gate has max_ratio.
    """
    checks = []
    if "max" in gate:
        checks.append(_check(f"{metric} <= {gate['max']:g}", value <= gate["max"], f"{value:.4g}"))
    if "min" in gate:
        checks.append(_check(f"{metric} >= {gate['min']:g}", value >= gate["min"], f"{value:.4g}"))
    if "max_ratio" in gate and baseline is not None:
        ratio = value / baseline if baseline else math.inf
        name = f"{metric} <= {gate['max_ratio']:g} x the baseline's"
        # By product: a baseline without any error leaves no ratio, and is still met by a model without any.
        passed = value <= gate["max_ratio"] * baseline
        checks.append(_check(name, passed, f"{value:.4g} against {baseline:.4g}, ratio {ratio:.4f}"))
    return checks


def _check(name: str, passed: bool, detail: str) -> Check:
    return Check(name, bool(passed), detail)

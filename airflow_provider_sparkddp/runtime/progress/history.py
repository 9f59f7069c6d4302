"""The history of metrics: every value that was logged, in bounded memory; thinned evenly where there are too many."""

from __future__ import annotations

import math
from typing import Any

POINTS = 20_000
POINTS_OF_A_NAME = 1_000
NAMES = 1_000


class _Series:
    """The values of one name: every one, or every 2nd, 4th, 8th … once there were too many."""

    def __init__(self) -> None:
        self.every, self._seen = 1, 0
        self.points: list[tuple[int, int, Any]] = []

    def add(self, step: int, epoch: int, value: Any) -> None:
        if self._seen % self.every == 0:
            self.points.append((step, epoch, value))
        self._seen += 1
        self.thin(POINTS_OF_A_NAME)

    def thin(self, limit: int) -> None:
        while len(self.points) > limit:
            del self.points[1::2]
            self.every *= 2


class History:
    """(step, epoch, name, value) of every metric. Values may be tensors of any device until they are asked for."""

    def __init__(self) -> None:
        self._series: dict[str, _Series] = {}
        self._left_out: set[str] = set()

    def add(self, step: int, epoch: int, name: str, value: Any) -> None:
        if name not in self._series and len(self._series) >= NAMES:
            self._left_out.add(name)
            return
        self._series.setdefault(name, _Series()).add(step, epoch, value)

    def settle(self) -> None:
        """Turn tensors into numbers; on a device this waits for it."""
        for series in self._series.values():
            series.points = [(step, epoch, _number(value)) for step, epoch, value in series.points]

    def to_json(self) -> dict[str, Any]:
        """Columns of the same length, in the order of the steps.

        `thinned` is name -> n where every nth value is there, and `names_left_out` counts names beyond the first thousand. A value
        is None for NaN and infinities, which aren't JSON.
        """
        self.settle()
        for series in self._series.values():
            series.thin(max(POINTS // len(self._series), 1))
        rows = [
            (step, epoch, name, value) for name, series in self._series.items() for step, epoch, value in series.points
        ]
        rows.sort(key=lambda row: row[0])
        columns = zip(*rows, strict=True) if rows else ((), (), (), ())
        return {
            **dict(zip(("step", "epoch", "name", "value"), map(list, columns), strict=True)),
            "thinned": {name: series.every for name, series in self._series.items() if series.every > 1},
            "names_left_out": len(self._left_out),
        }


def _number(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None

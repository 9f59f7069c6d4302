"""Which ranks are slower than the others, and at what; pure.

Under DDP all ranks' steps take the same time, since they wait for one another. What tells them apart is what each does alone:
waiting for its data, and its own training_step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

SLOWER = 1.2
# Less than this is no rank's fault but chance.
SECONDS, SHARE_OF_ALL = 1.0, 0.05


@dataclass(frozen=True)
class SlowRank:
    """Seconds of the rank's own work, and the median of the others'.

    Attributes:
        at: "data" or "compute", whichever costs more.
    """

    rank: int
    at: str
    seconds: float
    others: float

    def __str__(self) -> str:
        return (
            f"slower than the other ranks, at its {self.at}: {self.seconds:,.1f} s of its own work (waiting for data and in "
            f"training_step), the others' median is {self.others:,.1f} s"
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": round(self.seconds, 3), "others": round(self.others, 3)}


def slow_ranks(data: Sequence[float], compute: Sequence[float], seconds: float) -> list[SlowRank]:
    """The ranks whose own work took 20 % longer than the median of the others, if that cost a second and 5 % of the training.

    Args:
        data, compute: seconds of each rank, in their order.
        seconds: the training's.
    """
    own = [d + c for d, c in zip(data, compute, strict=True)]
    found = []
    for rank, (mine, others) in enumerate(zip(own, _others(own), strict=True)):
        if mine >= SLOWER * others and mine - others >= max(SECONDS, SHARE_OF_ALL * seconds):
            # What is too much of each, against what the others' middle is.
            more_data, more_compute = data[rank] - _median(data), compute[rank] - _median(compute)
            found.append(SlowRank(rank, "data" if more_data > more_compute else "compute", mine, others))
    return found


def _others(values: Sequence[float]) -> list[float]:
    """For each value the median of all the others; of one alone itself."""
    ordered = sorted(values)
    return [_median_without(ordered, bisect_left(ordered, value)) for value in values]


def _median_without(ordered: Sequence[float], index: int) -> float:
    rest = len(ordered) - 1
    if rest == 0:
        return ordered[0]
    low, high = ((rest - 1) // 2, rest // 2)
    return (ordered[low + (low >= index)] + ordered[high + (high >= index)]) / 2


def _median(values: Sequence[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]

"""Alternating runs and the arithmetic on them: medians, the ratio of two, and its spread. Knows nothing of Spark."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Figures = Mapping[str, float]


def no_figures(folder: Path) -> Figures:
    return {}


def nothing() -> None:
    """For a case that has nothing to do before each run."""


@dataclass(frozen=True)
class Variant:
    """One way of doing the work.

    Attributes:
        work: timed; writes into the folder, which is new and does not exist yet, and gives the seconds of its phases.
        look: not timed; figures of what was written, by name. The folder is deleted afterwards.
    """

    name: str
    work: Callable[[Path], Figures]
    look: Callable[[Path], Figures] = no_figures


@dataclass(frozen=True)
class Run:
    """One timed run."""

    seconds: float
    phases: Figures = field(default_factory=dict)
    figures: Figures = field(default_factory=dict)


@dataclass(frozen=True)
class Ratio:
    """Ratio of two medians; `low` and `high` are the least and the greatest ratio of a round's pair."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f}–{self.high:.3f})"


def ratio(ours: Sequence[float], baseline: Sequence[float]) -> Ratio:
    """The i-th of ours ran beside the i-th of the baseline.

    Raises:
        ValueError: the runs are not pairs, or there are none.
    """
    if len(ours) != len(baseline) or not ours:
        raise ValueError(f"{len(ours)} runs of ours and {len(baseline)} of the baseline are no pairs")
    paired = [one / other for one, other in zip(ours, baseline, strict=True)]
    return Ratio(statistics.median(ours) / statistics.median(baseline), min(paired), max(paired))


def seconds(runs: Sequence[Run]) -> list[float]:
    return [run.seconds for run in runs]


def medians(parts: Sequence[Figures]) -> dict[str, float]:
    """For each name the median over the parts that have it, in the order in which names are first seen."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: statistics.median(part[name] for part in parts if name in part) for name in names}


def spread(values: Sequence[float]) -> float:
    """Greatest over least: 1.0 is flat."""
    return max(values) / min(values)


def alternate(
    variants: Sequence[Variant],
    *,
    repeat: int,
    scratch: Path,
    before: Callable[[], None] = nothing,
    tell: Callable[[str], None] = print,
) -> dict[str, list[Run]]:
    """A warm-up of each variant, then `repeat` rounds of A B C, A B C, …, so that what drifts meets all of them alike.

    `before` runs ahead of each run, outside of the timing. The i-th run of each variant belongs to round i.
    """
    runs: dict[str, list[Run]] = {variant.name: [] for variant in variants}
    for number in range(repeat + 1):
        name = f"round {number} of {repeat}" if number else "warm-up"
        for variant in variants:
            before()
            run = _timed(variant, scratch / "run")
            tell(f"{name}: {variant.name}: {run.seconds:.2f} s")
            if number:
                runs[variant.name].append(run)
    return runs


def _timed(variant: Variant, folder: Path) -> Run:
    if folder.exists():
        raise FileExistsError(f"{folder} is there already: each run writes into a folder of its own")
    try:
        started = time.perf_counter()
        phases = variant.work(folder)
        took = time.perf_counter() - started
        return Run(took, phases, variant.look(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)

"""Planning alone: a million Zipf-sized groups packed into 1,000 ranks, longest first. No Spark.

Each time in a process of its own. `--rows` is the number of groups here.
Two kinds of skew: the largest group is half of a mean rank, or 3 % of all rows.
"""

from __future__ import annotations

import importlib
import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import numpy.typing as npt

from benchmarks import memory
from benchmarks.record import Record, Table, Target
from benchmarks.setup import NotMeasurable, Setup
from benchmarks.tables import zipf_sizes

# Here these are groups.
ROWS, SMOKE_ROWS = 1_000_000, 5_000
GROUPS_A_RANK, ROWS_A_GROUP = 1_000, 1_000
SECONDS, MEGABYTES = 5.0, 500.0
GROUPS = "airflow_provider_sparkddp.runtime.partition.groups"
Figures = Mapping[str, float]


def run(setup: Setup) -> Record:
    pack()
    groups, ranks = setup.rows, setup.rows // GROUPS_A_RANK
    kinds = {"largest half a rank": 0.5 / ranks, "largest 3 % of the rows": 0.03}
    runs: dict[str, list[Figures]] = {kind: [] for kind in kinds}
    for number in range(1, setup.repeat + 1):
        for kind, largest in kinds.items():
            found = in_own_process(groups, ranks, largest)
            setup.tell(f"round {number} of {setup.repeat}: {kind}: {found['seconds']:.2f} s")
            runs[kind].append(found)
    return Record(
        title=f"packing {groups:,} groups into {ranks:,} ranks",
        conditions={"groups": groups, "ranks": ranks, "rows": groups * ROWS_A_GROUP, "rounds": setup.repeat},
        targets=[target for kind, done in runs.items() for target in _targets(kind, done)],
        tables=[_table(runs)],
        notes=["Best possible: the fullest rank holds no less than the mean, and no less than the largest group."],
    )


def pack() -> Callable[[npt.NDArray[np.int64], int], npt.NDArray[np.int32]]:
    """What is measured: rows of the groups and the number of bins -> each group's bin.

    Raises:
        NotMeasurable: this version of the package plans no groups.
    """
    try:
        found: Callable[[npt.NDArray[np.int64], int], npt.NDArray[np.int32]] = importlib.import_module(GROUPS).pack
    except (ImportError, AttributeError) as error:
        raise NotMeasurable(f"{GROUPS} has no `pack` in this version: there is no planning to measure") from error
    return found


def in_own_process(groups: int, ranks: int, largest: float) -> Figures:
    """Spawned, so that neither an earlier run's memory nor a warm cache of this process counts."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(measure, groups, ranks, largest).result()


def measure(groups: int, ranks: int, largest: float) -> Figures:
    """One packing: seconds, MB of the whole process at its peak, and how even the ranks are.

    Raises:
        RuntimeError: a group has no rank, or one that doesn't exist.
    """
    planner = pack()
    rows = zipf_sizes(groups * ROWS_A_GROUP, groups, largest)
    # A fixed order that isn't the sorted one: sorting is part of the work.
    rows = rows[np.random.default_rng(0).permutation(groups)]
    memory.reset_peak()
    started = time.perf_counter()
    bins = planner(rows, ranks)
    took, peak = time.perf_counter() - started, memory.peak()
    if bins.shape != rows.shape or bins.min() < 0 or bins.max() >= ranks:
        raise RuntimeError(f"pack gave {bins.shape} bins from {bins.min()} to {bins.max()} for {rows.shape} groups")
    filled = np.bincount(bins, weights=rows, minlength=ranks)
    best = max(filled.mean(), rows.max())
    figures = {"seconds": took, "largest / best possible": float(filled.max() / best)}
    return figures if peak is None else {**figures, "peak of the process, MB": peak / memory.MB}


def _targets(kind: str, runs: Sequence[Figures]) -> list[Target]:
    peaks = [each["peak of the process, MB"] for each in runs if "peak of the process, MB" in each]
    return [
        Target(f"{kind}: seconds", statistics.median(each["seconds"] for each in runs), SECONDS),
        Target(f"{kind}: peak of the process, MB", max(peaks) if peaks else None, MEGABYTES),
    ]


def _table(runs: Mapping[str, Sequence[Figures]]) -> Table:
    names = list(next(iter(runs.values()))[0])
    rows = [
        (kind, *(statistics.median(each[n] for each in done) for n in names), _rounds(done))
        for kind, done in runs.items()
    ]
    return Table("Packing, medians", ("sizes", *names, "rounds, s"), rows)


def _rounds(runs: Sequence[Figures]) -> str:
    return " ".join(f"{each['seconds']:.2f}" for each in runs)

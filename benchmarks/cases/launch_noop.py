"""Two ranks that only sum a one: from submit to that step, against TorchDistributor and an empty barrier job.

All run in one Spark session. TorchDistributor's tasks end their Python workers, so that the launch after it finds new ones and imports
torch anew; the launch after that one finds them again, as in a session that trains several times.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.launch import Launch, launch
from airflow_provider_sparkddp.runtime.barrier.rendezvous import Cores
from benchmarks import steps
from benchmarks.measure import Figures, Run, Variant, alternate, ratio
from benchmarks.record import Record, Target, phase_table, ratio_table
from benchmarks.session import java_version, settle, spark_session
from benchmarks.setup import Setup

# There is no table; `--rows` changes nothing.
ROWS = SMOKE_ROWS = 1
RANKS = 2
BASELINE, EMPTY = "TorchDistributor", "empty barrier job"
NEW, REUSED = "launch in new Python workers", "launch in reused ones"
FIRST_STEP = "to the first step"
SHARE, ABOVE = 0.25, 1.5


def run(setup: Setup) -> Record:
    with spark_session(setup) as spark:
        launches = Launches(spark)
        variants = [
            Variant(BASELINE, _torchs(spark)),
            Variant(NEW, launches.in_new),
            Variant(REUSED, launches.in_reused),
            Variant(EMPTY, _empty(spark)),
        ]
        runs = alternate(
            variants, repeat=setup.repeat, scratch=setup.scratch, before=lambda: settle(spark), tell=setup.tell
        )
        java = java_version(spark)
    return Record(
        title=f"a launch of {RANKS} ranks against TorchDistributor",
        conditions=setup.conditions() | {"ranks": RANKS},
        targets=[target for way in (REUSED, NEW) for target in _targets(runs, way)],
        tables=[ratio_table(runs, BASELINE), phase_table(runs)],
        java=java,
    )


def _targets(runs: Mapping[str, Sequence[Run]], way: str) -> list[Target]:
    ours, theirs = ([each.phases[FIRST_STEP] for each in runs[name]] for name in (way, BASELINE))
    above = statistics.median(ours) - statistics.median(each.seconds for each in runs[EMPTY])
    return [
        Target(f"{way}: submit to first step, ratio", ratio(ours, theirs), SHARE),
        Target(f"{way}: submit to first step, seconds above an empty barrier job", above, ABOVE),
    ]


@dataclass
class Launches:
    """Ours. Raises RuntimeError where the Python workers are not those that a variant's name says."""

    spark: Any
    pids: set[int] = field(default_factory=set)

    def in_new(self, folder: Path) -> Figures:
        return self._launch(folder, new=True)

    def in_reused(self, folder: Path) -> Figures:
        return self._launch(folder, new=False)

    def _launch(self, folder: Path, *, new: bool) -> Figures:
        started = time.time()
        todo = Launch("benchmarks.steps:ours", {}, f"file://{folder}", Cores(RANKS, 1))
        reports = launch(self.spark, todo, RANKS)
        before, self.pids = self.pids, {report["pid"] for report in reports}
        if new == bool(before & self.pids):
            raise RuntimeError(f"the ranks ran in {self.pids}, those before in {before}")
        return _told(started, reports)


def _torchs(spark: Any) -> Callable[[Path], Figures]:
    from pyspark.ml.torch.distributor import TorchDistributor

    def work(folder: Path) -> Figures:
        started = time.time()
        found = TorchDistributor(num_processes=RANKS, local_mode=False, use_gpu=False).run(steps.torchs)
        return _told(started, [found])

    return work


def _told(started: float, reports: Sequence[dict[str, Any]]) -> Figures:
    """Raises RuntimeError where the ranks did not meet."""
    if any(report["sum"] != RANKS for report in reports):
        raise RuntimeError(f"the ranks did not meet: {reports}")
    return {FIRST_STEP: min(report["at"] for report in reports) - started}


def _empty(spark: Any) -> Callable[[Path], Figures]:
    def nothing(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    def work(folder: Path) -> Figures:
        spark.range(0, RANKS, 1, RANKS).mapInArrow(nothing, "id long", barrier=True).collect()
        return {}

    return work

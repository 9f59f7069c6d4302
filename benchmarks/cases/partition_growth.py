"""Four sizes of one table, ours alone with validation=0.1: time per row and the driver's memory are to stay flat.

`--rows` is the largest size; the others are a third, a tenth and a thirtieth of it. Flat:
from the tenth on, within 20 %. The sizes take turns, for Java's compiler makes each run faster than the one before.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Figures, Run, Variant, alternate, medians, seconds, spread
from benchmarks.partition_job import partitioned, require_rows, written_manifest
from benchmarks.record import Record, Table, Target, figure_table, phase_table
from benchmarks.session import driver_memory, java_version, reset_peaks, settle, spark_session
from benchmarks.setup import Setup
from benchmarks.tables import make_rows

ROWS, SMOKE_ROWS = 30_000_000, 90_000
PARTS = (30, 10, 3, 1)
# From here on fixed costs no longer show in the time of a row.
FLAT_FROM_PART = 10
FLAT = 1.20
HELD = ("Python after, MB", "heap used after, MB")
# Of the driver alone only where tasks have JVMs of their own.
JVM = "JVM after, MB"


def run(setup: Setup) -> Record:
    sizes = [setup.rows // part for part in PARTS]
    with spark_session(setup) as spark:
        variants = {rows: _variant(spark, setup, rows) for rows in sizes}

        def before() -> None:
            settle(spark)
            reset_peaks(spark)

        listed = list(variants.values())
        done = alternate(listed, repeat=setup.repeat, scratch=setup.scratch, before=before, tell=setup.tell)
        runs = {rows: done[variant.name] for rows, variant in variants.items()}
        java = java_version(spark)
    named = {f"{rows:,} rows": done for rows, done in runs.items()}
    flat = {rows: done for rows, done in runs.items() if rows >= setup.rows // FLAT_FROM_PART}
    per_row = [microseconds(rows, done) for rows, done in flat.items()]
    return Record(
        title="time per row and the driver's memory as the table grows",
        conditions=setup.conditions(columns=20),
        targets=[
            Target(f"time per row from {min(flat):,} rows up, greatest / least", spread(per_row), FLAT),
            *(_memory_target(name, flat) for name in (HELD if setup.master.startswith("local[") else (*HELD, JVM))),
        ],
        tables=[_times(runs), figure_table("Memory of the driver", named), phase_table(named)],
        notes=[
            "On a local[N] master the JVM runs the tasks too, and its size is theirs; `--master local-cluster[2,1,1024]` parts them."
        ],
        java=java,
    )


def _variant(spark: Any, setup: Setup, rows: int) -> Variant:
    source, name = setup.scratch / f"table-{rows}", f"{rows:,} rows"
    setup.tell(f"making {name} × 20 columns")
    make_rows(spark, source, rows)
    return Variant(name, partitioned(spark, source, num_nodes=setup.ranks, validation=0.1), _look(spark, rows))


def _look(spark: Any, rows: int) -> Callable[[Path], Figures]:
    def look(folder: Path) -> Figures:
        # Before the manifest is read for the check: that is not the job's memory.
        held = driver_memory(spark)
        require_rows(written_manifest(folder), rows)
        return held

    return look


def microseconds(rows: int, runs: Sequence[Run]) -> float:
    """Of a row, by the median run."""
    return 1e6 * statistics.median(seconds(runs)) / rows


def _memory_target(name: str, runs: Mapping[int, Sequence[Run]]) -> Target:
    held = [medians([run.figures for run in done]).get(name) for done in runs.values()]
    known = [value for value in held if value is not None]
    return Target(f"{name}, greatest / least", spread(known) if known else None, FLAT)


def _times(runs: Mapping[int, Sequence[Run]]) -> Table:
    body = [
        (f"{rows:,}", microseconds(rows, done), statistics.median(seconds(done)), _rounds(done))
        for rows, done in runs.items()
    ]
    return Table("Times", ("rows", "µs a row", "median s", "rounds, s"), body)


def _rounds(runs: Sequence[Run]) -> str:
    return " ".join(f"{run.seconds:.2f}" for run in runs)

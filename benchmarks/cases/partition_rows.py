"""The partition job (plain, with validation, without a shuffle) against `df.repartition(n).write.parquet`.

A table of 20 columns (a long id, 12 doubles, 4 floats, 2 ints, a string of 20 categories) becomes 4 shares. Ours is the whole job:
manifest, hashes and statistics are part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure import Figures, Variant, alternate, ratio, seconds
from benchmarks.partition_job import partitioned, require_rows, written_manifest
from benchmarks.record import Record, Target, figure_table, phase_table, ratio_table
from benchmarks.session import java_version, settle, spark_session
from benchmarks.setup import Setup
from benchmarks.tables import make_rows

ROWS, SMOKE_ROWS = 10_000_000, 100_000
BASELINE = "repartition.write"
# way -> (settings, the most that it may take of the baseline's time)
WAYS: dict[str, tuple[dict[str, Any], float]] = {
    "validation=None": ({"validation": None}, 1.05),
    "validation=0.1": ({"validation": 0.1}, 1.15),
    "shuffle=False": ({"shuffle": False}, 0.58),
}


def run(setup: Setup) -> Record:
    with spark_session(setup) as spark:
        source = setup.scratch / "table"
        setup.tell(f"making {setup.rows:,} rows × 20 columns")
        make_rows(spark, source, setup.rows)
        look = _look(setup.rows)
        variants = [Variant(BASELINE, _plain(spark, source, setup.ranks))] + [
            Variant(way, partitioned(spark, source, num_nodes=setup.ranks, **settings), look)
            for way, (settings, _) in WAYS.items()
        ]
        runs = alternate(
            variants, repeat=setup.repeat, scratch=setup.scratch, before=lambda: settle(spark), tell=setup.tell
        )
        java = java_version(spark)
    base = seconds(runs[BASELINE])
    return Record(
        title=f"the partition job against `df.repartition({setup.ranks}).write.parquet`",
        conditions=setup.conditions(columns=20),
        targets=[Target(f"{way}, ratio", ratio(seconds(runs[way]), base), limit) for way, (_, limit) in WAYS.items()],
        tables=[
            ratio_table(runs, BASELINE),
            phase_table(runs),
            figure_table("What was written", {way: runs[way] for way in WAYS}),
        ],
        java=java,
    )


def _plain(spark: Any, source: Path, ranks: int) -> Callable[[Path], Figures]:
    def work(folder: Path) -> Figures:
        spark.read.parquet(f"file://{source}").repartition(ranks).write.parquet(f"file://{folder}")
        return {}

    return work


def _look(rows: int) -> Callable[[Path], Figures]:
    def look(folder: Path) -> Figures:
        manifest = written_manifest(folder)
        require_rows(manifest, rows)
        train = manifest.rank_rows("train")
        return {
            "files": len(manifest.files),
            "MB": sum(file.bytes for file in manifest.files) / 1e6,
            "largest / mean rank": max(train) * len(train) / sum(train),
        }

    return look

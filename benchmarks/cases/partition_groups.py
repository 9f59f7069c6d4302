"""`group_by` and `order_by` against neuralforecast's layout: time, and both layouts' skew.

That layout is `df.repartitionByRange(n, id).sortWithinPartitions(id, ds).write.parquet`. Series
of Zipf-like lengths, the longest 3 % of all rows, lie in random order and become 4 shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.measure import Figures, Variant, alternate, ratio, seconds
from benchmarks.partition_job import partitioned, require_rows, written_manifest
from benchmarks.record import Record, Target, figure_table, phase_table, ratio_table
from benchmarks.session import java_version, settle, spark_session
from benchmarks.setup import Setup
from benchmarks.tables import make_series, zipf_sizes

ROWS, SMOKE_ROWS = 10_000_000, 100_000
ROWS_A_GROUP = 500
BASELINE, OURS = "repartitionByRange, sorted", "group_by, order_by"
LIMIT = 1.15


def run(setup: Setup) -> Record:
    sizes = zipf_sizes(setup.rows, setup.rows // ROWS_A_GROUP)
    with spark_session(setup) as spark:
        source = setup.scratch / "table"
        setup.tell(f"making {setup.rows:,} rows in {len(sizes):,} series, the longest {sizes[0]:,} rows")
        make_series(spark, source, sizes)
        grouped = partitioned(spark, source, num_nodes=setup.ranks, group_by="unique_id", order_by="ds")
        variants = [
            Variant(
                BASELINE, _by_range(spark, source, setup.ranks), lambda folder: _range_figures(folder, setup.ranks)
            ),
            Variant(OURS, grouped, lambda folder: _our_figures(folder, setup.rows)),
        ]
        runs = alternate(
            variants, repeat=setup.repeat, scratch=setup.scratch, before=lambda: settle(spark), tell=setup.tell
        )
        java = java_version(spark)
    figures = [run.figures for run in runs[OURS]]
    return Record(
        title=f"group_by against `df.repartitionByRange({setup.ranks}, id).sortWithinPartitions(id, ds).write.parquet`",
        conditions=setup.conditions(columns=7, groups=len(sizes), **{"largest group": int(sizes[0])}),
        targets=[
            Target("ratio", ratio(seconds(runs[OURS]), seconds(runs[BASELINE])), LIMIT),
            Target("groups cut between ranks", max(each["groups cut"] for each in figures), 0),
            Target("largest / mean rank", max(each["largest / mean rank"] for each in figures), 1.02),
        ],
        tables=[ratio_table(runs, BASELINE), phase_table(runs), figure_table("Layout", runs)],
        java=java,
    )


def _by_range(spark: Any, source: Path, ranks: int) -> Callable[[Path], Figures]:
    def work(folder: Path) -> Figures:
        frame = spark.read.parquet(f"file://{source}")
        ranged = frame.repartitionByRange(ranks, "unique_id").sortWithinPartitions("unique_id", "ds")
        ranged.write.parquet(f"file://{folder}")
        return {}

    return work


def _range_figures(folder: Path, ranks: int) -> Figures:
    """There a file is a rank; a rank without a file has no rows."""
    import pyarrow.parquet as pq

    files = sorted(folder.glob("*.parquet"))
    rows = [pq.read_metadata(file).num_rows for file in files]
    return _layout(rows, ranks, len(files), [[file] for file in files])


def _our_figures(folder: Path, rows: int) -> Figures:
    manifest = written_manifest(folder)
    require_rows(manifest, rows)
    shares = manifest.shares["train"]
    files = [sorted({folder / manifest.files[piece.file].name for piece in share}) for share in shares]
    return _layout(manifest.rank_rows("train"), manifest.world_size, len(manifest.files), files)


def _layout(rows: list[int], ranks: int, files: int, files_of_ranks: Iterable[Iterable[Path]]) -> Figures:
    return {
        "files": files,
        "largest / mean rank": max(rows) * ranks / sum(rows),
        "groups cut": groups_cut([set().union(*map(_ids, files)) for files in files_of_ranks]),
    }


def _ids(file: Path) -> set[str]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    return set(pc.unique(pq.read_table(file, columns=["unique_id"]).column(0)).to_pylist())


def groups_cut(ids_of_ranks: list[set[str]]) -> int:
    """How many groups lie in more than one rank."""
    return len({each for ids in ids_of_ranks for each in ids if sum(each in other for other in ids_of_ranks) > 1})

"""What row_group_rows costs and gives: time to write, rows read a second, bytes, memory.

The default of the operator is the one that the others are compared with. Reading: one process, a row group at
a time into one float32 matrix, with files in the page cache.
"""

from __future__ import annotations

import io
import multiprocessing
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from airflow_provider_sparkddp.spec import jobs
from benchmarks import memory
from benchmarks.measure import Figures, Run, Variant, alternate, ratio
from benchmarks.partition_job import partitioned, require_rows, written_manifest
from benchmarks.record import Record, Table, Target, figure_table, phase_table, ratio_table
from benchmarks.session import java_version, settle, spark_session
from benchmarks.setup import Setup
from benchmarks.tables import make_rows

ROWS, SMOKE_ROWS = 10_000_000, 100_000
SIZES = (16_384, 65_536, 131_072, 262_144, 1_048_576)
READ = "rows read a second"
# Where the default may be worse than the best of the sizes; a measure for choosing it, not a promise to users.
WORSE = 1.10


def run(setup: Setup) -> Record:
    default = way(jobs.ROW_GROUP_ROWS)
    with spark_session(setup) as spark:
        source = setup.scratch / "table"
        setup.tell(f"making {setup.rows:,} rows × 20 columns")
        make_rows(spark, source, setup.rows)
        variants = [
            Variant(
                way(size), partitioned(spark, source, num_nodes=setup.ranks, row_group_rows=size), _look(setup.rows)
            )
            for size in dict.fromkeys((jobs.ROW_GROUP_ROWS, *SIZES))
        ]
        runs = alternate(
            variants, repeat=setup.repeat, scratch=setup.scratch, before=lambda: settle(spark), tell=setup.tell
        )
        java = java_version(spark)
    return Record(
        title="the size of row groups: writing, reading, bytes and memory",
        conditions=setup.conditions(columns=20),
        targets=[
            Target(f"{default}: seconds to write / least of all sizes", _write_ratio(runs, default), WORSE),
            Target(f"{default}: seconds to read / least of all sizes", _read_ratio(runs, default), WORSE),
        ],
        tables=[
            ratio_table(runs, default),
            _reading(runs, default),
            figure_table("Files and memory", runs, without=READ),
            phase_table(runs),
        ],
        java=java,
    )


def way(size: int) -> str:
    return f"row_group_rows={size:,}"


def _write_ratio(runs: Mapping[str, Sequence[Run]], default: str) -> float:
    medians = {name: statistics.median(run.seconds for run in done) for name, done in runs.items()}
    return medians[default] / min(medians.values())


def _read_ratio(runs: Mapping[str, Sequence[Run]], default: str) -> float:
    medians = {name: statistics.median(_reads(done)) for name, done in runs.items()}
    return max(medians.values()) / medians[default]


def _reads(runs: Sequence[Run]) -> list[float]:
    return [run.figures[READ] for run in runs]


def _reading(runs: Mapping[str, Sequence[Run]], default: str) -> Table:
    base = _reads(runs[default])
    rows = []
    for name, done in runs.items():
        found = ratio(_reads(done), base)
        rows.append((name, statistics.median(_reads(done)), found.median, found.low, found.high))
    return Table("Reading", ("way", READ, "ratio (more is better)", "least of pairs", "greatest of pairs"), rows)


def _look(rows: int) -> Any:
    def look(folder: Path) -> Figures:
        manifest = written_manifest(folder)
        require_rows(manifest, rows)
        files = [str(folder / file.name) for file in manifest.files]
        groups = [size for file in manifest.files for size in file.row_groups]
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
            read = pool.submit(measure_reading, files).result()
        return {
            **read,
            "MB": sum(file.bytes for file in manifest.files) / 1e6,
            "row groups": len(groups),
            "rows of the largest": max(groups),
        }

    return look


def measure_reading(files: Sequence[str]) -> Figures:
    """Memory of the first row group, then the speed of reading all of them; in a process that did nothing else."""
    _wake_reader()
    read = {}
    before = memory.resident()
    memory.reset_peak()
    next(matrices(files[:1]))
    peak = memory.peak()
    if before is not None and peak is not None:
        read["memory of one, MB"] = (peak - before) / memory.MB
    started = time.perf_counter()
    rows = sum(len(matrix) for matrix in matrices(files))
    return {READ: rows / (time.perf_counter() - started), **read}


def _wake_reader() -> None:
    """What the library takes for itself when it is first used is no row group's."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table({"x": [0.0], "y": [0.0]}), buffer, compression="zstd")
    pq.read_table(buffer)


def matrices(files: Sequence[str]) -> Iterator[npt.NDArray[np.float32]]:
    """Each row group's numbers (all columns but the id and the category) as (rows, columns)."""
    import pyarrow.parquet as pq

    for file in files:
        parquet = pq.ParquetFile(file)
        columns = [name for name in parquet.schema_arrow.names if name not in ("id", "category")]
        for group in range(parquet.num_row_groups):
            table = parquet.read_row_group(group, columns=columns)
            matrix = np.empty((table.num_rows, len(columns)), np.float32)
            for position, name in enumerate(columns):
                matrix[:, position] = table.column(name).to_numpy()
            yield matrix

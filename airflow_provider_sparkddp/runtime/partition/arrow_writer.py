"""Parquet out where Spark's JVM knows no such storage: each task writes its own rows through pyarrow, and puts them by fsspec.

A task streams its rows into one local file a split, and puts the files when all rows are in. Their names go to the driver as the
task's result: Spark hands on that of one attempt a task, so files of attempts that failed or came second are named by nobody.
"""

from __future__ import annotations

import os
import platform
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.partition.rows import quoted
from airflow_provider_sparkddp.runtime.partition.splits import SPLIT
from airflow_provider_sparkddp.runtime.sources import faults
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError

AUTO, SPARK, ARROW = "auto", "spark", "arrow"
# Under this name Spark writes rows whose partition column is null.
NULL_SPLIT = "__HIVE_DEFAULT_PARTITION__"


def choose(spark: Any, folder: str, writer: str) -> str:
    """Who writes to the folder: "spark" where Spark's JVM has a FileSystem for its scheme, otherwise "arrow".

    Args:
        writer: "auto", or the one that the user wants.

    Raises:
        SparkDDPError: SDDP-310 for writer="spark" without such a FileSystem.
    """
    if writer == ARROW:
        return ARROW
    scheme = paths.hadoop_uri(folder).split("://", 1)[0]
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:  # Spark Connect: there is no way to ask
        return SPARK if writer == SPARK else ARROW
    if _has_filesystem(spark, jvm, scheme):
        return SPARK
    if writer == AUTO:
        return ARROW
    hadoop = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
    package = faults.CONNECTORS.get(scheme, "").replace("<version of Spark's Hadoop>", hadoop)
    given = f"packages='{package}'" if package else f"a jar with a FileSystem for {scheme}:// by packages or jars"
    raise SparkDDPError(
        "SDDP-310",
        f"writer='spark' is set, and this Spark has no FileSystem for {scheme}:// to write {folder}.",
        f"Give {given} to the operator, or set writer='arrow', and executors write through pyarrow and fsspec.",
    )


def _has_filesystem(spark: Any, jvm: Any, scheme: str) -> bool:
    from py4j.protocol import Py4JJavaError

    try:
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(
            scheme, spark._jsparkSession.sessionState().newHadoopConf()
        )
    except Py4JJavaError:  # no scheme of this name, or a class for it that isn't there
        return False
    return True


@dataclass(frozen=True)
class _Target:
    """What every task must know of the files that it writes."""

    folder: str
    compression: str
    row_group_rows: int


def write(frame: Any, folder: str, columns: Sequence[str], compression: str, row_group_rows: int) -> list[str]:
    """Write the rows as they are dealt to Spark's tasks and in their order, one file a task and split.

    Args:
        frame: holds the columns and `sparkddp_split`.
        row_group_rows: rows of each row group of a file but its last; a task holds one row group a split in memory.

    Returns:
        The files' names below the folder, sorted: `sparkddp_split=<split>/part-<task's partition>-<nonce>.parquet`.

    Raises:
        SparkDDPError: SDDP-301 in the words of the host that could not write; what else fails in Spark is raised as it is.
    """
    kept = frame.select(*map(quoted, (*columns, SPLIT)))
    task = partial(_write_task, target=_Target(folder, compression, row_group_rows))
    try:
        rows = kept.mapInArrow(task, "name string").collect()
    except Exception as error:
        told = faults.told(error)
        if told is None:
            raise
        raise told from error
    return sorted(row["name"] for row in rows)


def _write_task(batches: Iterator[Any], target: _Target) -> Iterator[Any]:
    """The body of one task, in Spark's own Python worker."""
    import pyarrow
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None  # Spark runs this, nobody else
    partition = context.partitionId()
    with ExitStack() as stack:
        with _naming("its scratch space"):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sparkddp-", dir=_disk(partition))))
        parts: dict[str, _Part] = {}
        for batch in batches:
            with _naming(str(folder)):
                for split, rows in _by_split(batch):
                    if split not in parts:
                        parts[split] = _Part(folder / f"{len(parts)}.parquet", rows.schema, target)
                    parts[split].add(rows)
        names = {split: f"{SPLIT}={split}/part-{partition:05d}-{uuid.uuid4().hex}.parquet" for split in parts}
        for split, part in parts.items():
            with _naming(str(folder)):
                part.close()
                storage.put_file(part.path, paths.join(target.folder, names[split]))
                part.path.unlink()
    if names:
        yield pyarrow.RecordBatch.from_pydict({"name": list(names.values())})


def _disk(partition: int) -> str | None:
    """One of the disks that Spark was given for scratch files, taken in turn; None is the system's own."""
    disks = [disk for disk in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if disk and Path(disk).is_dir()]
    return disks[partition % len(disks)] if disks else None


@contextmanager
def _naming(scratch: str) -> Iterator[None]:
    """What storage or the local disk refuses becomes SDDP-301 with the host's name. Spark tries the task again before it gives up.

    Without the cause: the driver reads the first such error of the text that Spark makes of it.
    """
    try:
        yield
    except OSError as error:
        raise _on_this_host(
            f"{scratch} cannot be written ({type(error).__name__}: {error}).",
            "Give Spark scratch space that holds a task's share of the data (spark.local.dir), or more and smaller shares.",
        ) from None
    except SparkDDPError as error:
        raise _on_this_host(error.message, error.remedy) from None


def _on_this_host(message: str, remedy: str) -> SparkDDPError:
    return SparkDDPError("SDDP-301", f"the executor on {platform.node()}: {message}", remedy)


class _Part:
    """One split's file of one task. Rows wait in memory until they fill a row group."""

    def __init__(self, path: Path, schema: Any, target: _Target) -> None:
        import pyarrow.parquet as pq

        self.path, self._schema, self._limit = path, _as_spark_writes(schema), target.row_group_rows
        # Without Arrow's own copy of the schema: a reader sees what it sees in Spark's files.
        self._writer = pq.ParquetWriter(
            str(path), self._schema, compression=target.compression, write_statistics=True, store_schema=False
        )
        self._waiting: list[Any] = []
        self._rows = 0

    def add(self, batch: Any) -> None:
        batch = batch.cast(self._schema)
        while batch.num_rows:
            taken = batch.slice(0, self._limit - self._rows)
            self._waiting.append(taken)
            self._rows += taken.num_rows
            batch = batch.slice(taken.num_rows)
            if self._rows == self._limit:
                self._flush()

    def _flush(self) -> None:
        import pyarrow

        if self._waiting:
            self._writer.write_table(pyarrow.Table.from_batches(self._waiting), row_group_size=self._limit)
        self._waiting, self._rows = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.close()


def _by_split(batch: Any) -> Iterator[tuple[str, Any]]:
    """The batch's rows of each split, in their order, without the split's column."""
    import pyarrow.compute as pc

    splits = pc.fill_null(batch.column(SPLIT), NULL_SPLIT)
    rows = batch.drop_columns([SPLIT])
    found = pc.unique(splits).to_pylist()
    for split in found:
        yield split, rows if len(found) == 1 else rows.filter(pc.equal(splits, split))


def _as_spark_writes(schema: Any) -> Any:
    """The schema of a file that Spark's writer makes: instants in UTC, no types of 64-bit offsets."""
    import pyarrow

    return pyarrow.schema([pyarrow.field(f.name, _as_spark_type(f.type), f.nullable) for f in schema])


def _as_spark_type(kind: Any) -> Any:
    import pyarrow

    types = pyarrow.types
    if types.is_timestamp(kind):
        return pyarrow.timestamp("us", kind.tz and "UTC")
    if types.is_large_string(kind):
        return pyarrow.string()
    if types.is_list(kind) or types.is_large_list(kind):
        inner = kind.value_field
        return pyarrow.list_(pyarrow.field("element", _as_spark_type(inner.type), inner.nullable))
    return kind

"""Parquet out: one exchange at most into as many files as wanted; then what lies there is read back and described.

Files are written by Spark's own writer (or by executors through Arrow) into the try's folder, and described by the executors, so that
nothing large passes through the driver; a few small ones it describes itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.data.encoders import encoder, merge_fits
from airflow_provider_sparkddp.runtime.partition import describe
from airflow_provider_sparkddp.runtime.partition.rows import row_hash
from airflow_provider_sparkddp.runtime.partition.splits import SPLIT
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.manifests import TRAIN, Column, PartFile

_PART = "sparkddp_part"
# Up to so many files and bytes the driver describes them itself: sooner done than executors' Python is up.
FEW, SMALL = 64, 64 << 20
# Files that a task holds open at a time: one a split. Without, Spark would sort all rows by split first.
OPEN_FILES = 8
# Parquet tries a dictionary for each column of each row group and gives it up beyond this size. At its own 1 MiB it would sort
# every double of a row group of 131,072 rows into one, for nothing: measured as a fifth of the whole write.
DICTIONARY_BYTES = 64 << 10


@dataclass(frozen=True)
class Layout:
    """How the files are to be.

    Attributes:
        row_group_rows: most rows of a row group.
        split: the one split of all rows, or None where each row names its own.
    """

    compression: str
    row_group_rows: int
    split: str | None


def exchanged(frame: Any, files: int) -> Any:
    """The rows spread over so many partitions by a hash of the row.

    Spark's own `repartition(n)` deals them round, and must sort them first lest a task that is run again deals them otherwise; a
    hash is the row's own, needs no sorting, and spreads evenly but for repeated rows. What is left uneven, the shares even out.
    """
    from pyspark.sql import functions as F

    columns = [name for name in frame.columns if name != SPLIT]
    # The upper half of the hash: the split by fraction goes by its remainder.
    part = F.pmod(F.shiftrightunsigned(row_hash(columns), 32), F.lit(files)).cast("int")
    return frame.withColumn(_PART, part).repartitionById(files, F.col(_PART)).drop(_PART)


def write(frame: Any, folder: str, layout: Layout) -> None:
    """By Spark's own writer, one file a partition and split; timestamps as UTC microseconds."""
    spark = frame.sparkSession
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    spark.conf.set("spark.sql.maxConcurrentOutputFileWriters", str(OPEN_FILES))
    options = {
        "compression": layout.compression,
        "parquet.block.row.count.limit": str(layout.row_group_rows),
        "parquet.dictionary.page.size": str(DICTIONARY_BYTES),
    }
    if layout.split:
        target = paths.join(folder, f"{SPLIT}={layout.split}")
        frame.drop(SPLIT).write.mode("error").options(**options).parquet(paths.hadoop_uri(target))
    else:
        frame.write.partitionBy(SPLIT).mode("error").options(**options).parquet(paths.hadoop_uri(folder))


@dataclass(frozen=True)
class Described:
    """What lies in the folder."""

    files: list[PartFile]
    columns: list[Column]
    encoders: Mapping[str, Mapping[str, Any]]


def described(
    spark: Any, folder: str, names: Sequence[str], types: Mapping[str, Column], encode: Mapping[str, str], binned: bool
) -> Described:
    """The named files, their columns and encoders, read through fsspec, as training will.

    Args:
        binned: whether a file's number is that of a bin of groups.

    Raises:
        SparkDDPError: SDDP-210, SDDP-213; SDDP-302 when a file that Spark wrote isn't seen where it is described.
    """
    if not names:
        return Described([], [], {})
    task = _Describe(folder, dict(types), dict(encode))
    if len(names) <= FEW and sum(storage.size(paths.join(folder, name)) for name in names) <= SMALL:
        found = list(task.of(names))
    else:
        found = _by_executors(spark, names, task)
    facts = {name: fact for name, fact in found if name}
    fits = [fit for name, fit in found if not name]
    files = [_part_file(name, facts[name], binned) for name in sorted(facts)]
    stats = [facts[name]["columns"] for name in sorted(facts)]
    columns = [describe.column(type_, describe.merged([s[name] for s in stats])) for name, type_ in types.items()]
    encoders = {
        name: encoder(name, kind, merge_fits(kind, [fit[name] for fit in fits if name in fit]))
        for name, kind in encode.items()
    }
    return Described(files, columns, encoders)


def names_in(folder: str) -> list[str]:
    """All Parquet files below the folder, relative to it."""
    return [name for name in storage.files_below(folder) if name.endswith(".parquet")]


@dataclass(frozen=True)
class _Describe:
    folder: str
    types: dict[str, Column]
    encode: dict[str, str]

    def of(self, names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """(name, facts) of each file; last ("", what the encoders learnt from all of them)."""
        fits: describe.Fits = {}
        for name in names:
            training = split_of(name) == TRAIN
            facts, its = describe.parquet_file(paths.join(self.folder, name), self.types, self.encode, training)
            fits |= {c: merge_fits(self.encode[c], [fits[c], fit] if c in fits else [fit]) for c, fit in its.items()}
            yield name, facts
        yield "", fits

    def batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        names = [name for batch in batches for name in batch.column("name").to_pylist()]
        for name, facts in self.of(names):
            yield pyarrow.RecordBatch.from_pydict({"name": [name], "facts": [json.dumps(facts)]})


def _by_executors(spark: Any, names: Sequence[str], task: _Describe) -> list[tuple[str, dict[str, Any]]]:
    tasks = max(1, min(len(names), spark.sparkContext.defaultParallelism))
    # Dealt round, for neighbours are alike in size; the partition of a row is its number.
    rows = [(place % tasks, name) for place, name in enumerate(names)]
    frame = spark.createDataFrame(rows, "part int, name string").repartitionById(tasks, "part").select("name")
    found = frame.mapInArrow(task.batches, "name string, facts string").collect()
    return [(row["name"], json.loads(row["facts"])) for row in found]


def split_of(name: str) -> str:
    """The split that a file's name tells."""
    return name.split("/")[0].removeprefix(f"{SPLIT}=")


def _part_file(name: str, facts: Mapping[str, Any], binned: bool) -> PartFile:
    groups = tuple(facts["row_groups"])
    number = re.search(r"/part-(\d+)", name)
    place = int(number.group(1)) if binned and number else None
    return PartFile(f"{paths.DATA}/{name}", split_of(name), sum(groups), facts["bytes"], facts["sha256"], groups, place)

"""Parquet out: one exchange at most into as many files as wanted; then what lies there is read back and described.

Files are written by Spark's own writer (or by executors through Arrow) into the try's folder, and described by the executors, so that
nothing large passes through the driver; a few small ones it describes itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.data.encoders import encoder, merge_fits
from airflow_provider_sparkddp.runtime.partition import describe
from airflow_provider_sparkddp.runtime.partition.rows import row_hash
from airflow_provider_sparkddp.runtime.partition.splits import SPLIT, UNDECIDED
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.manifests import SPLITS, TRAIN, Column, PartFile

_PART = "sparkddp_part"
# Up to so many files and bytes the driver describes them itself: sooner done than executors' Python is up.
FEW, SMALL = 64, 64 << 20
# Files that a task holds open at a time: one a split. Without, Spark would sort all rows by split first.
OPEN_FILES = 8
PARQUET = {
    # A dictionary is tried for each column of each row group and given up beyond this size. At Parquet's own 1 MiB it would sort
    # every double of a row group of 131,072 rows into one, for nothing: measured as a fifth of the whole write.
    "parquet.dictionary.page.size": str(32 << 10),
    # The manifest holds the whole file's SHA-256, which a reader checks; a second sum a page cost 5 % of a plain write.
    "parquet.page.write-checksum.enabled": "false",
}


@dataclass(frozen=True)
class Layout:
    """How the files are to be.

    Attributes:
        row_group_rows: most rows of a row group.
        splits: those that rows may belong to.
        binned: whether a file is a bin of groups.
        files: number of files a split; 0 where each of Spark's tasks writes the rows as they come to it, one file a split.
    """

    compression: str
    row_group_rows: int
    splits: Sequence[str]
    binned: bool
    files: int


def layout(settings: Mapping[str, Any]) -> Layout:
    """As the job's settings want it."""
    asked = [split for split in SPLITS if split == TRAIN or settings[split] is not None]
    # A column that decides may be null.
    undecided = [UNDECIDED] if any(isinstance(settings[split], Mapping) for split in asked[1:]) else []
    binned = bool(settings["group_by"])
    files = settings["num_nodes"] * settings["devices"] * settings["files_per_rank"]
    dealt = files if binned or settings["shuffle"] else 0
    return Layout(settings["compression"], settings["row_group_rows"], (*asked, *undecided), binned, dealt)


def exchanged(frame: Any, place: Any, layout: Layout) -> Any:
    """The rows, each in the partition of its split and place: first those of the first split, then the next one's.

    A file's number then tells both. To have Spark's writer sort them out, by `partitionBy`, was measured as a fifth of the whole.

    Args:
        place: an int expression from 0 to `layout.files` - 1.
    """
    from pyspark.sql import functions as F

    first = F.lit(0)
    for at, split in enumerate(layout.splits[1:], start=1):
        first = F.when(F.col(SPLIT) == split, at * layout.files).otherwise(first)
    partitions = layout.files * len(layout.splits)
    return frame.withColumn(_PART, (first + place).cast("int")).repartitionById(partitions, F.col(_PART)).drop(_PART)


def hashed(frame: Any, files: int, seed: int) -> Any:
    """A place for each row by a hash of it.

    Spark's own `repartition(n)` deals rows round, and must sort them first lest a task that is run again deals them otherwise; a
    hash is the row's own, needs no sorting, and spreads evenly but for repeated rows. What is left uneven, the shares even out.
    """
    from pyspark.sql import functions as F

    columns = [name for name in frame.columns if name != SPLIT]
    # The upper half of the hash: the split by fraction goes by its remainder. The same hash, so that Spark takes it once.
    return F.pmod(F.shiftrightunsigned(row_hash(columns, seed), 32), F.lit(files)).cast("int")


def write(frame: Any, folder: str, layout: Layout) -> None:
    """By Spark's own writer, one file a partition and split; timestamps as UTC microseconds."""
    spark = frame.sparkSession
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    spark.conf.set("spark.sql.maxConcurrentOutputFileWriters", str(OPEN_FILES))
    limit = {"parquet.block.row.count.limit": str(layout.row_group_rows)}
    options = {"compression": layout.compression, **limit, **PARQUET}
    if layout.files or len(layout.splits) == 1:
        frame.drop(SPLIT).write.mode("error").options(**options).parquet(paths.hadoop_uri(folder))
    else:
        frame.write.partitionBy(SPLIT).mode("error").options(**options).parquet(paths.hadoop_uri(folder))


@dataclass(frozen=True)
class Written:
    """A file, named relative to the folder, and what its name tells.

    Attributes:
        bin: place among the bins of groups, None without groups.
    """

    name: str
    split: str
    bin: int | None


def written(names: Sequence[str], layout: Layout) -> list[Written]:
    """What the files' names tell. Other files than Parquet's are left out."""
    return [
        Written(name, _split(name, layout), _number(name) % layout.files if layout.binned else None)
        for name in names
        if name.endswith(".parquet")
    ]


@dataclass(frozen=True)
class Described:
    """What lies in the folder."""

    files: list[PartFile]
    columns: list[Column]
    encoders: Mapping[str, Mapping[str, Any]]


def described(
    spark: Any, folder: str, files: Sequence[Written], types: Mapping[str, Column], encode: Mapping[str, str]
) -> Described:
    """The files, their columns and encoders, read through fsspec, as training will.

    Raises:
        SparkDDPError: SDDP-210, SDDP-213; SDDP-302 when a file that Spark wrote isn't seen where it is described.
    """
    if not files:
        return Described([], [], {})
    task = _Describe(folder, dict(types), dict(encode))
    if len(files) <= FEW and sum(storage.size(paths.join(folder, file.name)) for file in files) <= SMALL:
        found = list(task.of((file.name, file.split) for file in files))
    else:
        found = _by_executors(spark, files, task)
    facts = {name: fact for name, fact in found if name}
    fits = [fit for name, fit in found if not name]
    parts = [_part_file(file, facts[file.name]) for file in sorted(files, key=lambda file: file.name)]
    stats = [facts[file.name]["columns"] for file in files]
    columns = [describe.column(type_, describe.merged([s[name] for s in stats])) for name, type_ in types.items()]
    encoders = {
        name: encoder(name, kind, merge_fits(kind, [fit[name] for fit in fits if name in fit]))
        for name, kind in encode.items()
    }
    return Described(parts, columns, encoders)


@dataclass(frozen=True)
class _Describe:
    folder: str
    types: dict[str, Column]
    encode: dict[str, str]

    def of(self, files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, dict[str, Any]]]:
        """(name, facts) of each file, given as (name, split); last ("", what the encoders learnt from all of them)."""
        fits: describe.Fits = {}
        for name, split in files:
            uri = paths.join(self.folder, name)
            facts, its = describe.parquet_file(uri, self.types, self.encode, training=split == TRAIN)
            fits |= {c: merge_fits(self.encode[c], [fits[c], fit] if c in fits else [fit]) for c, fit in its.items()}
            yield name, facts
        yield "", fits

    def batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        files = [(row["name"], row["split"]) for batch in batches for row in batch.to_pylist()]
        for name, facts in self.of(files):
            yield pyarrow.RecordBatch.from_pydict({"name": [name], "facts": [json.dumps(facts)]})


def _by_executors(spark: Any, files: Sequence[Written], task: _Describe) -> list[tuple[str, dict[str, Any]]]:
    tasks = max(1, min(len(files), spark.sparkContext.defaultParallelism))
    # Dealt round, for neighbours are alike in size; the partition of a row is its number.
    rows = [(place % tasks, file.name, file.split) for place, file in enumerate(files)]
    frame = spark.createDataFrame(rows, "part int, name string, split string").repartitionById(tasks, "part")
    found = frame.select("name", "split").mapInArrow(task.batches, "name string, facts string").collect()
    return [(row["name"], json.loads(row["facts"])) for row in found]


def _split(name: str, layout: Layout) -> str:
    """By the folder that the file lies in, or by its number."""
    folder, _, _ = name.rpartition("/")
    if folder:
        return folder.removeprefix(f"{SPLIT}=")
    return layout.splits[_number(name) // layout.files if layout.files else 0]


def _number(name: str) -> int:
    """Of the partition that the file holds."""
    return int(name.rpartition("/")[2].split("-")[1])


def _part_file(file: Written, facts: Mapping[str, Any]) -> PartFile:
    groups = tuple(facts["row_groups"])
    name = f"{paths.DATA}/{file.name}"
    return PartFile(name, file.split, sum(groups), facts["bytes"], facts["sha256"], groups, file.bin)

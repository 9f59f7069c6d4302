"""Parquet out: one shuffle into as many files as ranks, for each split; then what lies there is read back and described.

Files are written by Spark's own writer into the try's folder, and described by the executors (rows, row groups, SHA-256, counts of
nulls, NaN and infinities), so that nothing large passes through the driver; a few small ones it describes itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.partition import describe
from airflow_provider_sparkddp.runtime.partition.sources import quoted
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import TRAIN, VALIDATION, Column, PartFile

SPLIT = "sparkddp_split"
TYPES = {
    "tinyint": "byte",
    "smallint": "short",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
}
FRACTION_BUCKETS = 1_000_000
# Up to so many files and bytes the driver describes them itself.
FEW, SMALL = 64, 64 << 20


def column_types(frame: Any) -> dict[str, str]:
    """Column -> type.

    Raises:
        SparkDDPError: SDDP-205 naming a column that can't be trained on, before anything is written.
    """
    types = {}
    for field in frame.schema.fields:
        spark_type = field.dataType.simpleString()
        if spark_type not in TYPES:
            raise SparkDDPError(
                "SDDP-205",
                f"the column {field.name!r} is of type {spark_type}; known are: {', '.join(dict.fromkeys(TYPES))}.",
                "Cast it in the source (a decimal to double, a struct to its fields), or leave it out by columns=[…].",
            )
        types[field.name] = TYPES[spark_type]
    return types


def split_column(validation: Any) -> str | None:
    """The column that decides on validation by its value, if there is one."""
    if isinstance(validation, Mapping):
        return str(validation["after"]["column"] if "after" in validation else validation["column"])
    return None


def with_split(frame: Any, validation: Any, seed: int) -> Any:
    """Adds the split's name to each row. A pure function of the row: reruns and other partitionings change nothing.

    Raises:
        SparkDDPError: SDDP-205 when the column for validation={"column": …} is not a boolean.
    """
    from pyspark.sql import functions as F

    if validation is None:
        return frame.withColumn(SPLIT, F.lit(TRAIN))
    if isinstance(validation, float):
        # A hash of all values, not rand(): the same row lands on the same side however the input is partitioned.
        bucket = F.pmod(
            F.xxhash64(*(F.col(quoted(c)) for c in sorted(frame.columns)), F.lit(seed)), F.lit(FRACTION_BUCKETS)
        )
        held_out = bucket < F.lit(round(validation * FRACTION_BUCKETS))
    elif "after" in validation:
        column = frame.schema[validation["after"]["column"]]
        held_out = F.col(quoted(column.name)) > F.lit(validation["after"]["value"]).cast(column.dataType)
    else:
        column = frame.schema[validation["column"]]
        if column.dataType.simpleString() != "boolean":
            raise SparkDDPError(
                "SDDP-205",
                f"validation names the column {column.name!r} of type {column.dataType.simpleString()}.",
                "Give a boolean column: true for the rows to hold out.",
            )
        held_out = F.col(quoted(column.name))
    # A null decides nothing: it becomes a split of its own, which is then refused with its count.
    return frame.withColumn(
        SPLIT, F.when(held_out.isNull(), F.lit("undecided")).otherwise(F.when(held_out, VALIDATION).otherwise(TRAIN))
    )


def write(frame: Any, folder: str, num_files: int) -> None:
    """One shuffle, one file a rank and split, by Spark's own writer; timestamps as UTC microseconds."""
    spark = frame.sparkSession
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    frame.repartition(num_files).write.partitionBy(SPLIT).mode("error").parquet(paths.hadoop_uri(folder))


def described(spark: Any, folder: str, types: Mapping[str, str]) -> tuple[list[PartFile], list[Column]]:
    """All Parquet files below the folder and their columns, read through fsspec, as training will.

    Raises:
        SparkDDPError: SDDP-302 when a file that Spark wrote isn't seen where it is described.
    """
    names = [name for name in storage.files_below(folder) if name.endswith(".parquet")]
    if not names:
        return [], []
    if sum(storage.size(paths.join(folder, name)) for name in names[:FEW]) <= SMALL and len(names) <= FEW:
        # Sooner done here than executors' Python is up.
        facts = {name: describe.parquet_file(paths.join(folder, name), types) for name in names}
    else:
        facts = _described_by_executors(spark, folder, names, types)
    files = [_part_file(name, facts[name]) for name in sorted(facts)]
    stats = [facts[name]["columns"] for name in sorted(facts)]
    return files, [Column(name, type_, **describe.merged([s[name] for s in stats])) for name, type_ in types.items()]


def _described_by_executors(
    spark: Any, folder: str, names: Sequence[str], types: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    tasks = max(1, min(len(names), spark.sparkContext.defaultParallelism))
    frame = spark.createDataFrame([(name,) for name in names], "name string").repartition(tasks)
    wanted = dict(types)
    rows = frame.mapInArrow(lambda batches: _describe_files(batches, folder, wanted), "name string, facts string")
    return {row["name"]: json.loads(row["facts"]) for row in rows.collect()}


def _part_file(name: str, facts: Mapping[str, Any]) -> PartFile:
    split = name.split("/")[0].removeprefix(f"{SPLIT}=")
    groups = tuple(facts["row_groups"])
    return PartFile(f"{paths.DATA}/{name}", split, sum(groups), facts["bytes"], facts["sha256"], groups)


def _describe_files(batches: Iterator[Any], folder: str, types: Mapping[str, str]) -> Iterator[Any]:
    import pyarrow

    for batch in batches:
        names = batch.column("name").to_pylist()
        facts = [json.dumps(describe.parquet_file(paths.join(folder, name), types)) for name in names]
        yield pyarrow.RecordBatch.from_pydict({"name": names, "facts": facts})

"""Which row is for training, which for validation, which for the test: a pure function of the row, or of its group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_sparkddp.runtime.partition.rows import BUCKETS, quoted, row_hash
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import TEST, TRAIN, VALIDATION

SPLIT = "sparkddp_split"
UNDECIDED = "undecided"
_PLACE = "sparkddp_place"


def flag_columns(*splits: Any) -> list[str]:
    """The boolean columns that decide: constant in each split, and so not kept."""
    return list(dict.fromkeys(str(s["column"]) for s in splits if isinstance(s, Mapping) and "column" in s))


def with_splits(
    frame: Any, validation: Any, test: Any, seed: int, group_by: Sequence[str], order_by: Sequence[str]
) -> Any:
    """Adds the split's name to each row; the test is decided first, validation from what it leaves.

    By a fraction: by a hash of the row's group, or of all its values. The same row lands on the same side in every run, however
    the input is partitioned and for any world size, and with groups no group is torn.

    Raises:
        SparkDDPError: SDDP-205 when a column that decides is not a boolean.
    """
    from pyspark.sql import functions as F

    if validation is None and test is None:
        return frame.withColumn(SPLIT, F.lit(TRAIN))
    bucket = F.pmod(row_hash(group_by or frame.columns, seed), F.lit(BUCKETS))
    test_buckets = round(test * BUCKETS) if isinstance(test, float) else 0
    in_test = _held_out(frame, test, bucket, (0, test_buckets), "test")
    last = [s["last_per_group"] if isinstance(s, Mapping) and "last_per_group" in s else 0 for s in (test, validation)]
    if any(last):
        frame = _with_place(frame, in_test if not last[0] else F.lit(False), group_by, order_by)
        in_test = F.col(_PLACE) <= last[0] if last[0] else in_test
    end = test_buckets + round(validation * BUCKETS) if isinstance(validation, float) else 0
    held_out = _held_out(frame, validation, bucket, (test_buckets, end), "validation")
    if last[1]:
        held_out = F.col(_PLACE) <= last[0] + last[1]
    # A null decides nothing: it becomes a split of its own, which is then refused with its count.
    split = F.when(in_test, TEST).when(in_test.isNull() | held_out.isNull(), UNDECIDED).when(held_out, VALIDATION)
    return frame.withColumn(SPLIT, split.otherwise(TRAIN)).drop(_PLACE)


def _with_place(frame: Any, skipped: Any, group_by: Sequence[str], order_by: Sequence[str]) -> Any:
    """Each row's place from the end of its group, 1 for the last; rows that are skipped have a count of their own."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    latest = [F.col(quoted(name)).desc() for name in order_by]
    # Rows of one time are told apart by their values, so that a rerun takes the same ones.
    latest.append(row_hash(frame.columns).desc())
    window = Window.partitionBy(*(F.col(quoted(name)) for name in group_by), skipped).orderBy(*latest)
    return frame.withColumn(_PLACE, F.row_number().over(window))


def _held_out(frame: Any, split: Any, bucket: Any, between: tuple[int, int], what: str) -> Any:
    """A condition; null where the deciding column is null."""
    from pyspark.sql import functions as F

    if isinstance(split, float):
        return (bucket >= F.lit(between[0])) & (bucket < F.lit(between[1]))
    if isinstance(split, Mapping) and "after" in split:
        column, value = frame.schema[split["after"]["column"]], split["after"]["value"]
        border = F.lit(value).cast(column.dataType)
        _require_castable(frame.sparkSession, what, value, column)
        return F.col(quoted(column.name)) > border
    if isinstance(split, Mapping) and "column" in split:
        column = frame.schema[split["column"]]
        if column.dataType.simpleString() != "boolean":
            raise SparkDDPError(
                "SDDP-205",
                f"{what} names the column {column.name!r} of type {column.dataType.simpleString()}.",
                "Give a boolean column: true for the rows to hold out.",
            )
        return F.col(quoted(column.name))
    return F.lit(False)


def _require_castable(spark: Any, what: str, value: Any, column: Any) -> None:
    """Raises SparkDDPError SDDP-101 for a border that isn't of the column's type: nothing would be greater."""
    from pyspark.sql import functions as F

    if spark.range(1).select(F.lit(value).try_cast(column.dataType)).first()[0] is None:
        raise SparkDDPError(
            "SDDP-101",
            f"{what} gives the value {value!r} for the column {column.name!r} of type {column.dataType.simpleString()}.",
            "Write it as Spark casts it, for example '2013-11-01' for a date.",
        )

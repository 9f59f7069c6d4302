"""The tables that are measured on: made by Spark, the same each time for the same number of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SOURCE_FILES = 8
CATEGORIES = 20
# What a series' rows hold beside its id and time: the target and four exogenous values.
EXOGENOUS = ("x1", "x2", "x3", "x4")


def make_rows(spark: Any, folder: Path, rows: int) -> None:
    """20 columns: id (long), 12 doubles, 4 floats, 2 ints, a string of 20 categories.

    Values are random: no codec shrinks them much.
    """
    from pyspark.sql import functions as F

    doubles = [F.randn(seed).alias(f"d{seed}") for seed in range(12)]
    floats = [F.rand(100 + seed).cast("float").alias(f"f{seed}") for seed in range(4)]
    ints = [(F.rand(200 + seed) * 1_000_000).cast("int").alias(f"i{seed}") for seed in range(2)]
    category = F.concat(F.lit("category_"), (F.rand(300) * CATEGORIES).cast("int")).alias("category")
    frame = spark.range(0, rows, 1, SOURCE_FILES).select("id", *doubles, *floats, *ints, category)
    frame.write.parquet(f"file://{folder}")


def make_series(spark: Any, folder: Path, sizes: npt.NDArray[np.int64]) -> None:
    """One series for each size: unique_id (string), ds (timestamp, hourly), y (double), four floats. Rows lie in random order."""
    from pyspark.sql import functions as F

    groups = spark.createDataFrame([(index, int(size)) for index, size in enumerate(sizes)], "series long, size long")
    steps = groups.select("series", F.explode(F.sequence(F.lit(0), F.col("size") - 1)).alias("step"))
    place = F.xxhash64("series", "step")
    frame = steps.repartition(SOURCE_FILES, place).sortWithinPartitions(place)
    frame.select(
        F.format_string("series_%07d", "series").alias("unique_id"),
        F.timestamp_seconds(1_577_836_800 + F.col("step") * 3600).alias("ds"),
        F.randn(0).alias("y"),
        *(F.rand(seed).cast("float").alias(name) for seed, name in enumerate(EXOGENOUS, 1)),
    ).write.parquet(f"file://{folder}")


def zipf_sizes(rows: int, groups: int, largest: float = 0.03) -> npt.NDArray[np.int64]:
    """Sizes of the groups, largest first, in proportion to 1 / k^s; together `rows`, none empty.

    s is chosen so that the first group holds the share `largest` of the rows.

    Raises:
        ValueError: the share is less than that of equal groups, or there are fewer rows than groups.
    """
    if not 1 / groups <= largest < 1 or rows < groups:
        raise ValueError(f"{rows} rows in {groups} groups, the largest {largest:.2%} of them: there are no such sizes")
    weights = _weights(groups, _exponent(groups, largest))
    sizes = 1 + np.floor((rows - groups) * weights).astype(np.int64)
    sizes[: rows - int(sizes.sum())] += 1
    return sizes


def _weights(groups: int, exponent: float) -> npt.NDArray[np.float64]:
    weights: npt.NDArray[np.float64] = np.arange(1, groups + 1, dtype=np.float64) ** -exponent
    weights /= weights.sum()
    return weights


def _exponent(groups: int, largest: float) -> float:
    """By bisection: the first weight grows with the exponent."""
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _weights(groups, middle)[0] < largest else (low, middle)
    return (low + high) / 2

"""Names and types of columns over files of several headers."""

from __future__ import annotations

import pytest
from pyspark.sql.types import DataType, DateType, DoubleType, IntegerType, LongType, StringType

from airflow_provider_sparkddp.runtime.sources import headers


def test_names_that_are_empty_or_doubled_are_those_that_spark_gives() -> None:
    assert headers.spark_names(["", "x", "id", "X"]) == ["_c0", "x1", "id", "X3"]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (IntegerType(), LongType(), LongType()),
        (DoubleType(), IntegerType(), DoubleType()),
        (DateType(), DateType(), DateType()),
        (DateType(), IntegerType(), None),
        (StringType(), IntegerType(), None),
    ],
)
def test_of_two_types_the_one_that_holds_both(one: DataType, other: DataType, both: DataType | None) -> None:
    assert headers.wider(one, other) == headers.wider(other, one) == both

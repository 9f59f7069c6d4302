"""From Spark's column types to those that a training can use; the others are refused by name before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.runtime.partition.rows import quoted
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import Column

NUMBERS = {
    "tinyint": "byte",
    "smallint": "short",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
}
TYPES = {**NUMBERS, "string": "string", "date": "date", "timestamp": "timestamp"}
# Decimals of so many digits without a fraction fit into a long; all others become double, which keeps 15 digits.
LONG_DIGITS = 18


def usable(frame: Any) -> tuple[Any, dict[str, Column]]:
    """The frame with decimals as long or double and Spark ML vectors as arrays, and column -> type.

    Raises:
        SparkDDPError: SDDP-205 naming all columns that can't be trained on.
    """
    from pyspark.sql import functions as F

    found = {f.name: _usable(F.col(quoted(f.name)), f.name, f.dataType) for f in frame.schema.fields}
    useless = [field for field in frame.schema.fields if found[field.name] is None]
    if useless:
        named = ", ".join(f"{field.name!r} of type {field.dataType.simpleString()}" for field in useless)
        raise SparkDDPError(
            "SDDP-205",
            f"there {'are the columns' if len(useless) > 1 else 'is the column'} {named}; known are: "
            f"{', '.join(dict.fromkeys(TYPES))}, decimal, arrays of numbers and Spark ML vectors.",
            "Turn each into one of these by columns={'name': 'SQL expression'} (a struct's field, a date's day), or leave it out.",
        )
    kept = {name: usable for name, usable in found.items() if usable is not None}
    frame = frame.select(*(column.alias(name) for name, (column, _) in kept.items()))
    return frame, {name: kind for name, (_, kind) in kept.items()}


def _usable(column: Any, name: str, type_: Any) -> tuple[Any, Column] | None:
    """The column as it is written, and its type; None where it can't be trained on."""
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import types as T

    if isinstance(type_, T.DecimalType):
        kind = _decimal(type_)
        return column.cast(kind), Column(name, NUMBERS[kind])
    if type(type_).__name__ == "VectorUDT":
        return vector_to_array(column), Column(name, "array", element="double")
    if isinstance(type_, T.ArrayType):
        inner = type_.elementType
        if isinstance(inner, T.DecimalType):
            kind = _decimal(inner)
            return column.cast(f"array<{kind}>"), Column(name, "array", element=NUMBERS[kind])
        if inner.simpleString() in NUMBERS:
            return column, Column(name, "array", element=NUMBERS[inner.simpleString()])
    if isinstance(type_, T.TimestampNTZType):
        # One meaning of a timestamp: an instant; the session's zone is UTC.
        return column.cast("timestamp"), Column(name, "timestamp")
    if type_.simpleString() in TYPES:
        return column, Column(name, TYPES[type_.simpleString()])
    return None


def _decimal(type_: Any) -> str:
    return "bigint" if type_.scale == 0 and type_.precision <= LONG_DIGITS else "double"


def with_lengths(frame: Any, types: Mapping[str, Column]) -> dict[str, Column]:
    """The types with the arrays' lengths; asks Spark once, and only where there are arrays.

    Raises:
        SparkDDPError: SDDP-205 for arrays of differing lengths or without elements, SDDP-206 for a null in one.
    """
    from pyspark.sql import functions as F

    arrays = [column for column in types.values() if column.type == "array"]
    if not arrays:
        return dict(types)
    measured = []
    for place, array in enumerate(arrays):
        column = F.col(quoted(array.name))
        length = F.when(column.isNotNull(), F.size(column))
        gaps = F.count_if(F.exists(column, lambda element: element.isNull()))
        measured += [F.min(length).alias(f"min{place}"), F.max(length).alias(f"max{place}"), gaps.alias(f"gaps{place}")]
    found = frame.agg(*measured).first()
    lengths = {
        a.name: _length(a.name, found[f"min{i}"], found[f"max{i}"], found[f"gaps{i}"]) for i, a in enumerate(arrays)
    }
    return {
        name: Column(name, "array", element=column.element, length=lengths[name]) if name in lengths else column
        for name, column in types.items()
    }


def _length(name: str, shortest: int | None, longest: int | None, gaps: int) -> int:
    if shortest != longest or longest == 0:
        raise SparkDDPError(
            "SDDP-205",
            f"the arrays in the column {name!r} have between {shortest} and {longest} elements.",
            "All rows need the same number, at least one: pad or cut them by columns={…: 'slice(…)'}, or leave the column out.",
        )
    if gaps:
        raise SparkDDPError(
            "SDDP-206",
            f"the arrays in the column {name!r} hold nulls in {gaps} rows.",
            "Fill them, for example by columns={…: 'transform(column, x -> coalesce(x, 0))'}.",
        )
    return longest or 1

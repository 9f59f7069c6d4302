"""CSV files of several headers as one table: columns are matched by name, where Spark alone would match them by place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from airflow_provider_sparkddp.runtime.sources import shapes
from airflow_provider_sparkddp.spec.columns import RESERVED
from airflow_provider_sparkddp.spec.errors import SparkDDPError

# Each header is read by itself: files with more of them are no table.
MOST = 32
# Of two types of a column the wider, where both are here; otherwise text.
WIDENING = ("int", "bigint", "double")


def aligned(spark: Any, source: Mapping[str, Any], given: Mapping[str, Any], schema: Any = None) -> Any:
    """One frame over all files; a column that a file lacks is null in its rows.

    Args:
        schema: the columns' types, and those of columns that no file has (for corrupt records); what it doesn't name is text.
            Without one, as Spark infers them.

    Raises:
        SparkDDPError: SDDP-212 for too many headers.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    plain = spark.read.format("csv").options(**{**given, "inferSchema": "false"}).load(source["path"])
    uris = plain.inputFiles()
    found = [shape for shape in shapes.of_files(spark, uris, "csv", lowered(given)) if shape.columns]
    if len(found) > MOST:
        raise SparkDDPError(
            "SDDP-212",
            f"{len(uris)} CSV files have {len(found)} different headers.",
            "Is the first line of each a header? Read files of one kind at a time, by a pattern in the path.",
        )
    names = [spark_names([name for name, _ in shape.columns or ()]) for shape in found]
    types = {field.name: field.dataType for field in schema.fields} if schema is not None else None
    known = {name.lower(): kind for name, kind in (types or inferred(spark, given, found, names)).items()}
    corrupt = lowered(given).get("columnnameofcorruptrecord")
    besides = [corrupt] if corrupt and types and corrupt in types else []
    frames = [
        _of_header(
            spark, source, given, shape, {name: known.get(name.lower(), StringType()) for name in [*header, *besides]}
        )
        for shape, header in zip(found, names, strict=True)
    ]
    if corrupt and corrupt.startswith(RESERVED):
        # Lines are counted by file: a union with columns that are missing would lose the files' names.
        frames = [frame.select("*", "_metadata") for frame in frames]
    together = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    held = {name.lower() for name in together.columns}
    absent = {name: F.lit(None).cast(kind) for name, kind in (types or {}).items() if name.lower() not in held}
    return together.withColumns(absent) if absent else together


def _of_header(
    spark: Any, source: Mapping[str, Any], given: Mapping[str, Any], shape: shapes.Shape, types: Mapping[str, Any]
) -> Any:
    """The rows of the files with one header. Read through the source's own path, so that folders' columns are there."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    schema = StructType()
    for name, kind in types.items():
        schema = schema.add(name, kind)
    frame = spark.read.format("csv").options(**given).schema(schema).load(source["path"])
    # Of the two spellings that Spark has for local files, this column takes the shorter.
    return frame.where(F.col("_metadata.file_path").isin([re.sub("^file:///", "file:/", uri) for uri in shape.files]))


def inferred(
    spark: Any, given: Mapping[str, Any], found: Sequence[shapes.Shape], names: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Column -> its type over the files of all headers: text unless inferSchema is set."""
    from pyspark.sql.types import StringType

    types: dict[str, Any] = {}
    for shape, header in zip(found, names, strict=True):
        files = [shapes.plain_path(uri) for uri in shape.files]
        schema = spark.read.format("csv").options(**given).load(files).schema
        for name, field in zip(header, schema.fields, strict=True):
            kind = field.dataType
            types[name] = wider(types[name], kind) or StringType() if name in types else kind
    return types


def wider(one: Any, other: Any) -> Any:
    """The type that holds both, or None."""
    names = one.simpleString(), other.simpleString()
    if one == other:
        return one
    if not set(names) <= set(WIDENING):
        return None
    return max((one, other), key=lambda kind: WIDENING.index(kind.simpleString()))


def spark_names(header: Sequence[str]) -> list[str]:
    """The names that Spark gives to columns: an empty one by its place, and doubled ones with their place."""
    lower = [name.lower() for name in header]
    return [
        f"_c{place}" if not name else f"{name}{place}" if lower.count(name.lower()) > 1 else name
        for place, name in enumerate(header)
    ]


def lowered(given: Mapping[str, Any]) -> dict[str, str]:
    """Options as Spark takes them: their names in any case, their values as text."""
    return {key.lower(): "" if value is None else str(value) for key, value in given.items()}

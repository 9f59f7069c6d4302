"""Lines of CSV and JSON that don't fit: counted by file, with the first of them and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from airflow_provider_sparkddp.runtime.sources import files, folders, headers, shapes

CORRUPT = "sparkddp_corrupt"
# Most files that are told apart, and most characters of a line that come to the driver, or to a person.
MOST_FILES, LONG, SHOWN = 1000, 20_000, 200


@dataclass(frozen=True)
class Malformed:
    """Lines of one file that don't fit. `why`: what is wrong with the first of them, where it can be told."""

    file: str
    lines: int
    first: str
    why: str

    def __str__(self) -> str:
        shown = self.first if len(self.first) <= SHOWN else f"{self.first[:SHOWN]}…"
        return f"{self.lines:,} in {self.file}, first {shown!r}{f' ({self.why})' if self.why else ''}"


def count(spark: Any, source: Mapping[str, Any], schema: Any = None) -> list[Malformed]:
    """One pass over the source, in which such lines are kept in a column of their own; files with most of them first.

    Args:
        schema: of the source as it was read, where that is known; otherwise Spark infers it leniently.
    """
    from pyspark.sql import functions as F

    frame = _permissive(spark, source, schema)
    columns = [name for name in frame.columns if name not in (CORRUPT, "_metadata")]
    place = F.struct("_metadata.file_block_start", F.monotonically_increasing_id())
    lines = frame.select(
        F.substring(CORRUPT, 1, LONG).alias("line"),
        # Spark refuses to read the corrupt column alone; the values also tell which of them didn't fit.
        F.to_json(F.struct(*(F.col("`" + name.replace("`", "``") + "`") for name in columns))).alias("row"),
        F.col("_metadata.file_path").alias("file"),
        place.alias("place"),
    ).where("line IS NOT NULL")
    counted = lines.groupBy("file").agg(
        F.count(F.lit(1)).alias("lines"), F.min_by(F.struct("line", "row"), "place").alias("first")
    )
    rows = counted.orderBy(F.desc("lines"), "file").limit(MOST_FILES).collect()
    return [_malformed(source, row, _in_files(frame, source, columns)) for row in rows]


def _malformed(source: Mapping[str, Any], row: Any, columns: Sequence[str]) -> Malformed:
    line, values = row["first"]["line"], json.loads(row["first"]["row"])
    given = headers.lowered(source.get("options") or {})
    # Of files with several headers it isn't known here which one this file has.
    unknown = len(line) >= LONG or (files.has_header(source) and files.tolerates(source, "schemas"))
    reason = "" if unknown else why(line, values, columns, files.format_of(source), given)
    return Malformed(unquote(row["file"]), row["lines"], line, reason)


def _in_files(frame: Any, source: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """The columns that stand in the files, without those from folders' names."""
    named = {column.lower() for column in folders.values(frame.inputFiles(), files.bases(source))}
    return [column for column in columns if column.lower() not in named]


def _permissive(spark: Any, source: Mapping[str, Any], schema: Any) -> Any:
    own = {files.MODE.lower(), files.CORRUPT.lower()}
    given = {key: value for key, value in files.options(source).items() if key.lower() not in own}
    given |= {files.MODE: "PERMISSIVE", files.CORRUPT: CORRUPT}
    schema = schema or files.schema_of(source)
    if schema is None:
        schema = files.read_as(spark, source, given).schema
    if CORRUPT not in schema.names:
        schema = type(schema)([*schema.fields]).add(CORRUPT, "string")
    return files.read_as(spark, source, given, schema)


def why(line: str, row: Mapping[str, Any], columns: Sequence[str], kind: str, options: Mapping[str, str]) -> str:
    """What is wrong with a line, or nothing.

    Args:
        row: what Spark made of it; a value that didn't fit is not in it.
        columns: those that stand in the files, in order.
    """
    if kind == "json":
        return _of_json(line, row)
    values = shapes.fields(line, options)
    if len(values) != len(columns):
        return f"{len(values)} values for {len(columns)} columns"
    missing = [name for name, value in zip(columns, values, strict=True) if value.strip() and name not in row]
    return f"column {missing[0]!r}" if missing else ""


def _of_json(line: str, row: Mapping[str, Any]) -> str:
    try:
        found = json.loads(line)
    except ValueError as error:
        return f"no JSON: {error}"
    if not isinstance(found, dict):
        return f"a {type(found).__name__}, not an object"
    missing = [name for name, value in found.items() if value is not None and name not in row]
    return f"column {missing[0]!r}" if missing else ""

"""Files in: a frame from `{"format", "path", "options", "tolerate"}`, read strictly but for what is tolerated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.runtime.sources import faults, headers
from airflow_provider_sparkddp.spec.arguments import is_empty
from airflow_provider_sparkddp.spec.errors import SparkDDPError

# Read by lines, each of which may be malformed; and by footers, of which Spark believes one.
TEXT, FOOTED = ("csv", "json"), ("parquet", "orc")
MODE, CORRUPT = "mode", "columnNameOfCorruptRecord"


def read(spark: Any, source: Mapping[str, Any]) -> Any:
    """The files as a DataFrame (lazy, but for its schema).

    Where differing schemas are tolerated, a column that a file lacks is null in its rows: columns go by their names, also in CSV.

    Raises:
        SparkDDPError: SDDP-212 when a CSV source has too many different headers.
        Exception: what Spark raises; see `reading.failed` and `mismatches.diagnose`.
    """
    return read_as(spark, source, options(source), schema_of(source))


def schema_of(source: Mapping[str, Any]) -> Any:
    """The user's own schema, or None. Raises SparkDDPError SDDP-101 in Spark's words."""
    if is_empty(source.get("schema")):
        return None
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        return StructType.fromDDL(source["schema"])
    except PySparkException as error:
        raise SparkDDPError(
            "SDDP-101",
            f"source['schema']: {faults.readable(error)}",
            "Write it as in CREATE TABLE, all columns of the files in their order: 'id BIGINT, day DATE, delay DOUBLE'.",
        ) from error


def read_as(spark: Any, source: Mapping[str, Any], given: Mapping[str, Any], schema: Any = None) -> Any:
    """As `read`, with other options; `schema`: the types, and perhaps a last column that takes corrupt records."""
    if has_header(source) and tolerates(source, "schemas"):
        return headers.aligned(spark, source, given, schema)
    reader = spark.read.format(source["format"]).options(**given)
    return (reader.schema(schema) if schema is not None else reader).load(source["path"])


def options(source: Mapping[str, Any]) -> dict[str, Any]:
    """The user's options, and those that make Spark strict, or lenient where that is tolerated; the user's win."""
    given, kind = dict(source.get("options") or {}), format_of(source)
    own: dict[str, Any] = {}
    if kind in TEXT and not handles_malformed(source):
        own[MODE] = "DROPMALFORMED" if tolerates(source, "malformed") else "FAILFAST"
    if kind == "csv":
        # Otherwise the parser skips what isn't asked for, and with it that a line is too short or too long.
        own["columnPruning"] = "false"
        if not is_empty(source.get("schema")):
            # Otherwise Spark gives the schema's names to whatever columns stand there.
            own["enforceSchema"] = "false"
    if kind in FOOTED and tolerates(source, "schemas"):
        own["mergeSchema"] = "true"
    theirs = headers.lowered(given)
    return given | {key: value for key, value in own.items() if key.lower() not in theirs}


def handles_malformed(source: Mapping[str, Any]) -> bool:
    """Whether the user's own options say what becomes of malformed lines: then that is left to them."""
    return not {MODE.lower(), CORRUPT.lower()}.isdisjoint(headers.lowered(source.get("options") or {}))


def tolerates(source: Mapping[str, Any], kind: str) -> bool:
    """Whether what is found of this kind is no error. Who sets Spark's mergeSchema tolerates differing schemas."""
    return kind in (source.get("tolerate") or ()) or (kind == "schemas" and is_on(source, "mergeSchema"))


def has_header(source: Mapping[str, Any]) -> bool:
    return format_of(source) == "csv" and is_on(source, "header")


def is_on(source: Mapping[str, Any], option: str) -> bool:
    return headers.lowered(source.get("options") or {}).get(option.lower(), "").lower() == "true"


def format_of(source: Mapping[str, Any]) -> str:
    return str(source.get("format", "")).lower()


def bases(source: Mapping[str, Any]) -> list[str]:
    """The paths below which folders such as `day=2013-01-01` are columns."""
    path = headers.lowered(source.get("options") or {}).get("basepath") or source["path"]
    return list(path) if isinstance(path, (list, tuple)) else [str(path)]

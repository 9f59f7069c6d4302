"""Spark in: a DataFrame from a table, files, SQL or a function of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.runtime.imports import import_object
from airflow_provider_sparkddp.runtime.sources import faults, files, jdbc, mismatches
from airflow_provider_sparkddp.spec.errors import SparkDDPError


def read(spark: Any, source: Mapping[str, Any]) -> Any:
    """The source as a DataFrame (lazy, but for its schema).

    Raises:
        SparkDDPError: SDDP-203 when Spark or the user's function refuses.
    """
    try:
        return _read(spark, source)
    except SparkDDPError:
        raise
    except Exception as error:
        raise failed(source, error, spark=spark) from error


def failed(source: Mapping[str, Any], error: Exception, *, what: str | None = None, spark: Any = None) -> SparkDDPError:
    """Reading, or writing what was read, failed: what of it all is at fault.

    Args:
        what: the argument at fault, such as "where='x >'", where it isn't the source.
        spark: with it, the source's files are looked into, which may read them once more.

    Returns:
        SDDP-204 (a column stands there twice), 212 (files disagree or are malformed), 310 (a jar is missing), 301 (storage is full
        or refuses), 308 (Spark was lost), otherwise 203; or what an executor raised, under its own code.
    """
    if isinstance(error, SparkDDPError):
        return error
    if faults.DOUBLED.search(faults.whole(error)):
        remedy = "Rename one where the data are made: Spark tells columns apart without case, unless spark.sql.caseSensitive is set."
        return SparkDDPError("SDDP-204", f"{describe(source)}: {faults.readable(error, 800)}", remedy)
    if "jdbc_conn_id" in source and (fault := jdbc.fault(source, error)):
        return fault
    known = faults.told(error) or (mismatches.diagnose(spark, source, error) if spark is not None else None)
    known = known or faults.lacking(error) or faults.of_storage(error) or faults.of_cluster(error)
    return known or unreadable(source, error, what=what)


def unreadable(source: Mapping[str, Any], error: Exception, *, what: str | None = None) -> SparkDDPError:
    """As SDDP-203, in Spark's own words. `what`: as in `failed`."""
    named = (what or describe(source))[:200]
    if what:
        remedy = (
            "Correct the expression. It may use the source's columns; a name with special signs stands in backticks."
        )
    elif faults.NO_FILES.search(faults.whole(error)):
        remedy = "Is there a file with rows? Files whose names begin with '_' or '.' are skipped by Spark."
    else:
        remedy = "Check the source as Spark sees it (spark.read… or spark.sql… in a notebook gives the same error)."
    return SparkDDPError("SDDP-203", f"{named}: {faults.readable(error, 990 - len(named))}", remedy)


def _read(spark: Any, source: Mapping[str, Any]) -> Any:
    if "jdbc_conn_id" in source:
        return jdbc.read(spark, source)
    if "table" in source:
        return spark.table(source["table"])
    if "sql" in source:
        return spark.sql(source["sql"])
    if "callable" in source:
        return _call(spark, source)
    return files.read(spark, source)


def _call(spark: Any, source: Mapping[str, Any]) -> Any:
    frame = import_object(source["callable"], "source['callable']")(spark, **(source.get("kwargs") or {}))
    if not hasattr(frame, "mapInArrow"):
        raise SparkDDPError(
            "SDDP-203",
            f"{source['callable']} returned a {type(frame).__name__}.",
            "Let it return a Spark DataFrame: fn(spark, **kwargs) -> DataFrame.",
        )
    return frame


def describe(source: Mapping[str, Any]) -> str:
    """One line for a person; no options, which may hold a secret."""
    if "jdbc_conn_id" in source:
        return jdbc.describe(source)
    if isinstance(source.get("path"), list):
        more = f" and {len(source['path']) - 1} more" if len(source["path"]) > 1 else ""
        return f"path {source['path'][0]}{more}"
    for key in ("table", "callable", "path"):
        if key in source:
            return f"{key} {source[key]}"
    return f"sql {' '.join(str(source['sql']).split())[:120]}"

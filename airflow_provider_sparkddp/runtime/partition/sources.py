"""Spark in: a DataFrame from a table, files, SQL or a function of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.runtime.imports import import_object
from airflow_provider_sparkddp.runtime.partition import jdbc
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
        raise unreadable(source, error) from error


def unreadable(source: Mapping[str, Any], error: Exception) -> SparkDDPError:
    if "jdbc_conn_id" in source and (fault := jdbc.fault(source, error)):
        return fault
    return SparkDDPError(
        "SDDP-203",
        f"{describe(source)}: {type(error).__name__}: {_first_line(error)}",
        "Check the source as Spark sees it (spark.read… or spark.sql… in a notebook gives the same error).",
    )


def _read(spark: Any, source: Mapping[str, Any]) -> Any:
    if "jdbc_conn_id" in source:
        return jdbc.read(spark, source)
    if "table" in source:
        return spark.table(source["table"])
    if "sql" in source:
        return spark.sql(source["sql"])
    if "callable" in source:
        return _call(spark, source)
    return spark.read.format(source["format"]).options(**(source.get("options") or {})).load(source["path"])


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
    for key in ("table", "callable", "path"):
        if key in source:
            return f"{key} {source[key]}"
    return f"sql {' '.join(str(source['sql']).split())[:120]}"


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    cut = text.split("JVM stacktrace")[0].split("\n\tat ")[0]
    return " ".join(cut.split())[:1000]

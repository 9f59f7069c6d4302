"""Checks of a partition's source: exactly one place to read from, with the keys that belong to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec import sql
from airflow_provider_sparkddp.spec.arguments import UNKNOWN, convert, is_empty
from airflow_provider_sparkddp.spec.checks.values import import_path, one_of
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.secrets import refuse_secret_text, refuse_secrets

SOURCE_SECRETS = (
    "Read a database by jdbc_conn_id. Otherwise let the function or the driver's own configuration fetch it (a secret manager, "
    "a file that only the driver may read, Spark's credential providers)."
)
# kind of source -> its keys
SOURCE_KEYS: dict[str, tuple[str, ...]] = {
    "path": ("format", "path", "options", "schema", "tolerate"),
    "table": ("table",),
    "sql": ("sql",),
    "callable": ("callable", "kwargs"),
    "jdbc_conn_id": (
        "jdbc_conn_id",
        "table",
        "query",
        "partition_column",
        "lower_bound",
        "upper_bound",
        "num_partitions",
        "fetch_size",
    ),
}
# What files may be found to hold that is an error unless it is tolerated; it is counted and shown either way.
TOLERABLE = ("schemas", "malformed", "partition_types")
# Formats whose files tell no types.
SCHEMALESS = ("csv", "json")
# number -> its least value
NUMBERS = {"num_partitions": 1, "fetch_size": 0}
NOT_TEXT = ("options", "kwargs", "tolerate", "lower_bound", "upper_bound", *NUMBERS)


def check_source(source: Mapping[str, Any]) -> None:
    """Exactly one of path, table, sql, callable and jdbc_conn_id, with the keys that belong to it."""
    kind = _kind(source)
    for key, value in source.items():
        one_of("a key of source", key, SOURCE_KEYS[kind])
        if key in ("options", "kwargs"):
            refuse_secrets(f"source[{key!r}]", convert(f"source[{key!r}]", value, "dict") or None, SOURCE_SECRETS)
        elif key in NUMBERS:
            _number(f"source[{key!r}]", value, NUMBERS[key])
        elif key not in NOT_TEXT and not (key == "path" and isinstance(value, list)) and not _unset(key, value):
            _text(f"source[{key!r}]", value)
    if kind == "path":
        _check_files(source)
    if kind == "jdbc_conn_id":
        _check_jdbc(source)
    if isinstance(source.get("sql"), str):
        sql.require_query("source['sql']", source["sql"])
    if isinstance(source.get("query"), str):
        sql.require_no_command("source['query']", source["query"])
    if isinstance(source.get("callable"), str):
        import_path("source['callable']", source["callable"])


def _unset(key: str, value: Any) -> bool:
    """An empty field of the trigger form, where a key may also be left out."""
    return key == "schema" and is_empty(value)


def _text(name: str, value: Any) -> None:
    if value is not UNKNOWN and not convert(name, value, "str").strip():
        raise SparkDDPError("SDDP-101", f"{name} is blank.", "Write what is to be read.")


def _number(name: str, value: Any, least: int) -> None:
    number = None if value is None else convert(name, value, "int")
    if isinstance(number, int) and number < least:
        raise SparkDDPError("SDDP-101", f"{name}={value!r} is too small.", f"Use at least {least}.")


def _kind(source: Mapping[str, Any]) -> str:
    if "jdbc_conn_id" in source:
        return "jdbc_conn_id"
    kinds = [kind for kind in SOURCE_KEYS if kind in source]
    if len(kinds) != 1:
        raise SparkDDPError(
            "SDDP-101",
            f"source has {', '.join(map(repr, source)) or 'no keys'}; it needs exactly one of {', '.join(SOURCE_KEYS)}.",
            "For example {'format': 'parquet', 'path': 's3://bucket/table'} or {'table': 'db.name'}.",
        )
    return kinds[0]


def _check_files(source: Mapping[str, Any]) -> None:
    refuse_secret_text("source['path']", source["path"], SOURCE_SECRETS)
    if "format" not in source:
        raise SparkDDPError(
            "SDDP-101", "source has a path and no format.", "Add 'format': 'csv' (or parquet, json, orc)."
        )
    if isinstance(source["path"], list):
        for path in convert("source['path']", source["path"], "names"):
            _text("a path of source['path']", path)
        if not source["path"]:
            raise SparkDDPError("SDDP-101", "source['path'] is an empty list.", "Name at least one path.")
    if not is_empty(source.get("schema")) and str(source["format"]).lower() not in SCHEMALESS:
        raise SparkDDPError(
            "SDDP-101",
            f"source['schema'] is set, and {source['format']} files tell their schema themselves.",
            "Leave it out; columns={'name': 'CAST(name AS type)'} on the operator changes types.",
        )
    for kind in convert("source['tolerate']", source.get("tolerate") or [], "names"):
        one_of("source['tolerate']", kind, TOLERABLE)


def _check_jdbc(source: Mapping[str, Any]) -> None:
    if ("table" in source) == ("query" in source):
        raise SparkDDPError(
            "SDDP-101",
            f"source has {', '.join(map(repr, source))}; beside jdbc_conn_id it needs exactly one of table and query.",
            "For example {'jdbc_conn_id': 'warehouse', 'table': 'public.flights'}.",
        )
    bounds = ("partition_column", "lower_bound", "upper_bound", "num_partitions")
    given = [key for key in bounds if source.get(key) is not None]
    if given and len(given) < len(bounds):
        missing = ", ".join(key for key in bounds if key not in given)
        raise SparkDDPError(
            "SDDP-101",
            f"source has {', '.join(given)} and no {missing}: Spark reads in parallel by all four of them.",
            "Give all four, or none to read through one connection.",
        )
    lower, upper = source.get("lower_bound"), source.get("upper_bound")
    if isinstance(lower, (int, float)) and isinstance(upper, (int, float)) and not lower < upper:
        raise jdbc_bounds(lower, upper)


def jdbc_bounds(lower: Any, upper: Any) -> SparkDDPError:
    """As SDDP-101, of bounds that leave nothing between them."""
    return SparkDDPError(
        "SDDP-101",
        f"source['lower_bound']={lower!r} is not less than upper_bound={upper!r}.",
        "Give about the least and the greatest value of the partition column; rows outside of them are read too.",
    )

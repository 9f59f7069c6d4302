"""Checks of PartitionToParquetOperator's arguments against one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec.arguments import convert
from airflow_provider_sparkddp.spec.checks.source import check_source
from airflow_provider_sparkddp.spec.checks.splits import check_splits
from airflow_provider_sparkddp.spec.checks.values import PLAIN, check_json, one_of, run_dir
from airflow_provider_sparkddp.spec.errors import SparkDDPError

COMPRESSIONS = ("zstd", "snappy")
WRITERS = ("auto", "spark", "arrow")
ENCODINGS = ("index", "standardize")
# gate of drift=… -> the type of its value
DRIFT_GATES = {"schema": "bool", "new_categories": "bool", "max_mean_shift": "float"}


def check_partition(arguments: dict[str, Any]) -> None:
    run_dir(arguments)
    if "source" in arguments:
        check_source(arguments["source"])
        check_json("source", arguments["source"], PLAIN)
    _check_columns(arguments.get("columns"))
    _check_amounts(arguments)
    _check_groups(arguments)
    check_splits(arguments)
    _check_encode(arguments.get("encode"))
    for name, valid in (("compression", COMPRESSIONS), ("writer", WRITERS)):
        if name in arguments:
            one_of(name, arguments[name], valid)
    _check_drift(arguments)
    _check_reuse(arguments)


def _check_reuse(arguments: Mapping[str, Any]) -> None:
    if arguments.get("fingerprint") and arguments.get("reuse") is False:
        raise SparkDDPError(
            "SDDP-101", "fingerprint is set and reuse is not.", "Set reuse=True, or leave fingerprint out."
        )
    silent = [kind for kind in ("jdbc_conn_id", "sql", "callable") if kind in (arguments.get("source") or {})]
    if silent and arguments.get("reuse") and "fingerprint" in arguments and not arguments["fingerprint"]:
        raise SparkDDPError(
            "SDDP-101",
            f"reuse=True, and nothing tells whether the rows of source[{silent[0]!r}] changed.",
            "Give fingerprint=… a text that changes when they do (a version, a date, a count), or leave reuse out.",
        )


def _check_columns(columns: Any) -> None:
    if columns is not None and not columns:
        raise SparkDDPError("SDDP-101", "columns is empty.", "Name the columns to keep, or leave it out to keep all.")
    names = list(columns or ())
    doubled = sorted({c for c in names if names.count(c) > 1})
    if doubled:
        raise SparkDDPError("SDDP-204", f"columns names {doubled[0]!r} twice.", "Name each column once.")


def _check_amounts(arguments: Mapping[str, Any]) -> None:
    sample, retention = arguments.get("sample"), arguments.get("retention")
    if sample is not None and not 0 < sample < 1:
        raise SparkDDPError(
            "SDDP-101", f"sample={sample!r} is not between 0 and 1.", "Use a fraction such as 0.01, or leave it out."
        )
    if retention is not None and retention <= 0:
        raise SparkDDPError("SDDP-101", f"retention={retention!r} is too small.", "Give days, such as 14, or None.")


def _check_groups(arguments: Mapping[str, Any]) -> None:
    grouped, ordered = arguments.get("group_by"), arguments.get("order_by")
    for name, value in (("group_by", grouped), ("order_by", ordered)):
        if value == [] or (value and len(set(value)) < len(value)):
            raise SparkDDPError("SDDP-101", f"{name}={value!r} is empty or repeats itself.", "Name each column once.")
    if ordered and "group_by" in arguments and not grouped:
        raise SparkDDPError(
            "SDDP-101",
            f"order_by={ordered!r} is set without group_by: it sorts the rows of a group.",
            "Set group_by too, or leave order_by out (a training shuffles the rows anyway).",
        )
    if grouped and arguments.get("shuffle") is False:
        raise SparkDDPError(
            "SDDP-101",
            f"shuffle=False leaves the rows where they lie, and group_by={grouped!r} moves each group to one rank.",
            "Leave one of the two out.",
        )


def _check_encode(encode: Any) -> None:
    for column, kind in (encode or {}).items():
        one_of(f"encode[{column!r}]", kind, ENCODINGS)


def _check_drift(arguments: Mapping[str, Any]) -> None:
    drift = arguments.get("drift") or {}
    if drift and "compare_with" in arguments and not arguments["compare_with"]:
        raise SparkDDPError(
            "SDDP-101",
            "drift sets gates, and compare_with names nothing to compare with.",
            "Set compare_with to the path of an earlier manifest, or leave drift out.",
        )
    for gate, value in drift.items():
        one_of("a key of drift", gate, tuple(DRIFT_GATES))
        convert(f"drift[{gate!r}]", value, DRIFT_GATES[gate])

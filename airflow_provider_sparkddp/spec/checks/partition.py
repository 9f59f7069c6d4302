"""Checks of PartitionToParquetOperator's arguments against one another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.arguments import UNKNOWN, convert, is_empty
from airflow_provider_sparkddp.spec.checks.source import check_source
from airflow_provider_sparkddp.spec.checks.splits import check_splits, deciding_columns
from airflow_provider_sparkddp.spec.checks.values import PLAIN, check_json, one_of, run_dir
from airflow_provider_sparkddp.spec.columns import require_present, require_safe, require_single
from airflow_provider_sparkddp.spec.errors import SparkDDPError

COMPRESSIONS = ("zstd", "snappy")
WRITERS = ("auto", "spark", "arrow")
ENCODINGS = ("index", "standardize")
BESIDE = ("validation", "test", "group_by", "order_by")
# More files than that are a mistake in num_nodes, devices or files_per_rank.
MOST_FILES = 100_000
# gate of drift=… -> the type of its value
DRIFT_GATES = {"schema": "bool", "new_categories": "bool", "max_mean_shift": "float"}


def check_partition(arguments: dict[str, Any]) -> None:
    run_dir(arguments)
    if "source" in arguments:
        check_source(arguments["source"])
        check_json("source", arguments["source"], PLAIN)
    _check_columns(arguments.get("columns"))
    _check_amounts(arguments)
    _check_files(arguments)
    _check_groups(arguments)
    check_splits(arguments)
    _check_flags(arguments)
    _check_encode(arguments)
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
    require_single(names, "columns")
    require_safe(names)


def _check_amounts(arguments: Mapping[str, Any]) -> None:
    sample, retention = arguments.get("sample"), arguments.get("retention")
    if sample is not None and not 0 < sample < 1:
        raise SparkDDPError(
            "SDDP-101", f"sample={sample!r} is not between 0 and 1.", "Use a fraction such as 0.01, or leave it out."
        )
    if retention is not None and retention <= 0:
        raise SparkDDPError("SDDP-101", f"retention={retention!r} is too small.", "Give days, such as 14, or None.")


def _check_files(arguments: Mapping[str, Any]) -> None:
    counts = [arguments.get(name) or 1 for name in ("num_nodes", "devices", "files_per_rank")]
    if math.prod(counts) > MOST_FILES:
        raise SparkDDPError(
            "SDDP-101",
            "num_nodes={} x devices={} x files_per_rank={} is more than {:,} files.".format(*counts, MOST_FILES),
            "Use the number of hosts, of ranks on each, and of files for each rank.",
        )
    if counts[2] > 1 and arguments.get("shuffle") is False:
        raise SparkDDPError(
            "SDDP-101",
            f"files_per_rank={counts[2]} is set, and shuffle=False leaves the rows in as many files as they are read in.",
            "Leave one of the two out.",
        )


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


def _check_flags(arguments: Mapping[str, Any]) -> None:
    """A boolean column that decides a split is constant in each, and left out: nothing else can go by it."""
    for split in ("validation", "test"):
        flag = arguments[split].get("column") if isinstance(arguments.get(split), Mapping) else None
        for name in ("group_by", "order_by", "encode"):
            if isinstance(flag, str) and flag in (arguments.get(name) or ()):
                raise SparkDDPError(
                    "SDDP-101",
                    f"{name} names {flag!r}, which {split}={dict(arguments[split])!r} takes out of the files.",
                    f"Leave it out of {name}, or keep a copy by columns={{'copy': '{flag}', …}}.",
                )


def _check_encode(arguments: Mapping[str, Any]) -> None:
    encode, columns = arguments.get("encode") or {}, arguments.get("columns")
    for column, kind in encode.items():
        one_of(f"encode[{column!r}]", kind, ENCODINGS)
    # Columns by which rows are split, grouped or sorted are kept without being named.
    if columns and all(name in arguments for name in BESIDE):
        deciding = deciding_columns(arguments["validation"], arguments["test"])
        besides = [*deciding, *(arguments["group_by"] or ()), *(arguments["order_by"] or ())]
        kept = list(dict.fromkeys([*columns, *besides]))
        require_present(list(encode), kept, "what is kept", "encode, or add it to columns")


def _check_drift(arguments: dict[str, Any]) -> None:
    if "compare_with" in arguments and is_empty(arguments["compare_with"]):
        arguments["compare_with"] = None
    drift, earlier = arguments.get("drift") or {}, arguments.get("compare_with")
    if isinstance(earlier, Mapping) and "manifest" not in earlier:
        raise SparkDDPError(
            "SDDP-101",
            f"compare_with has the keys {', '.join(map(repr, earlier))}.",
            "Give the output of a partition task, or the path of a manifest.json.",
        )
    if isinstance(earlier, str) and not earlier.lstrip().startswith("{"):
        paths.absolute_uri(earlier, "compare_with")
    if drift and "compare_with" in arguments and not arguments["compare_with"]:
        raise SparkDDPError(
            "SDDP-101",
            "drift sets gates, and compare_with names nothing to compare with.",
            "Set compare_with to the path of an earlier manifest, or leave drift out.",
        )
    for gate, value in drift.items():
        one_of("a key of drift", gate, tuple(DRIFT_GATES))
        value = convert(f"drift[{gate!r}]", value, DRIFT_GATES[gate])
        if value is not UNKNOWN and gate == "max_mean_shift" and value < 0:
            raise SparkDDPError(
                "SDDP-101",
                f"drift['max_mean_shift']={value!r} is negative.",
                "Give the largest shift, up or down, in standard deviations.",
            )

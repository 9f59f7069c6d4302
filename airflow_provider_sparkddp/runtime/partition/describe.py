"""Facts of a Parquet file, one row group in memory at a time: rows, hash, and for each column what training must know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import NUMERIC

Stats = dict[str, Any]


def parquet_file(uri: str, types: Mapping[str, str]) -> dict[str, Any]:
    """bytes, sha256, row_groups (rows of each) and columns (name -> stats).

    Raises:
        SparkDDPError: SDDP-302 when the file isn't visible here.
    """
    import pyarrow.parquet as pq

    try:
        digest, size = storage.sha256(uri), storage.size(uri)
        with storage.open_binary(uri) as handle:
            parquet = pq.ParquetFile(handle)
            groups = range(parquet.metadata.num_row_groups)
            stats = [_group_stats(parquet.read_row_group(group), types) for group in groups]
            rows = [parquet.metadata.row_group(group).num_rows for group in groups]
    except FileNotFoundError as error:
        raise SparkDDPError(
            "SDDP-302",
            f"Spark wrote {uri}, but it is not seen here.",
            "Set run_dir to storage that the Airflow worker, the driver and all executors share.",
        ) from error
    columns = {name: merged([group[name] for group in stats]) for name in types}
    return {"bytes": size, "sha256": digest, "row_groups": rows, "columns": columns}


def _group_stats(table: Any, types: Mapping[str, str]) -> dict[str, Stats]:
    return {name: _column_stats(table.column(name), types[name] in NUMERIC) for name in types}


def _column_stats(column: Any, numeric: bool) -> Stats:
    import pyarrow as pa
    import pyarrow.compute as pc

    stats: Stats = {"nulls": column.null_count, "nans": 0, "infinities": 0, "minimum": None, "maximum": None}
    if not numeric:
        return stats
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_floating(column.type):
        stats["nans"] = pc.sum(pc.is_nan(column)).as_py() or 0
        stats["infinities"] = pc.sum(pc.is_inf(column)).as_py() or 0
        column = column.filter(pc.is_finite(column))
    extremes = pc.min_max(column).as_py()
    return stats | {"minimum": extremes["min"], "maximum": extremes["max"]}


def merged(parts: Sequence[Stats]) -> Stats:
    """Stats of several pieces as one."""
    low = [p["minimum"] for p in parts if p["minimum"] is not None]
    high = [p["maximum"] for p in parts if p["maximum"] is not None]
    counts = {key: sum(p[key] for p in parts) for key in ("nulls", "nans", "infinities")}
    return {**counts, "minimum": min(low, default=None), "maximum": max(high, default=None)}

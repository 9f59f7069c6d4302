"""Facts of a Parquet file, one row group in memory at a time: rows, hash, and for each column what training must know."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.data.encoders import fit_piece, merge_fits, require_fit
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import NUMERIC, Column

Stats = dict[str, Any]
Fits = dict[str, dict[str, Any]]
# A string column with more different values in training rows is not compared by them.
MOST_CATEGORIES = 1000
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# The years 1 to 9999, as days and microseconds since the epoch.
DAYS = ((dt.date.min - EPOCH.date()).days, (dt.date.max - EPOCH.date()).days)
MICROSECONDS = (DAYS[0] * 86_400_000_000, (DAYS[1] + 1) * 86_400_000_000 - 1)


def parquet_file(
    uri: str, types: Mapping[str, Column], encode: Mapping[str, str], training: bool
) -> tuple[dict[str, Any], Fits]:
    """bytes, sha256, row_groups (rows of each), columns (name -> stats); and what the encoders learn from it.

    Args:
        encode: column -> kind of encoder.
        training: whether means, categories and encoders are taken from the file.

    Raises:
        SparkDDPError: SDDP-302 when the file isn't visible here, SDDP-210 for dates that nothing else can hold.
    """
    encode = encode if training else {}
    stats: dict[str, list[Stats]] = {name: [] for name in types}
    fits: Fits = {}
    strings = [name for name, column in types.items() if column.type == "string"]
    try:
        digest, size = _digest(uri), storage.size(uri)
        with _opened(uri) as source:
            parquet = pq.ParquetFile(source, read_dictionary=strings)
            groups = [parquet.metadata.row_group(group).num_rows for group in range(parquet.metadata.num_row_groups)]
            for group in range(len(groups)):
                table = parquet.read_row_group(group)
                for name, column in types.items():
                    stats[name].append(column_stats(table.column(name), column, training))
                for name, kind in encode.items():
                    fits[name] = learnt(name, kind, fits.get(name), table.column(name))
    except FileNotFoundError as error:
        raise SparkDDPError(
            "SDDP-302",
            f"Spark wrote {uri}, but it is not seen here.",
            "Set run_dir to storage that the Airflow worker, the driver and all executors share.",
        ) from error
    columns = {name: merged(pieces) for name, pieces in stats.items()}
    return {"bytes": size, "sha256": digest, "row_groups": groups, "columns": columns}, fits


def learnt(name: str, kind: str, fit: dict[str, Any] | None, column: Any) -> dict[str, Any]:
    """The fit with a piece of the column added. Raises SparkDDPError SDDP-213 as soon as no further piece could mend it."""
    piece = fit_piece(kind, column)
    fit = merge_fits(kind, [fit, piece] if fit else [piece])
    require_fit(name, kind, fit)
    return fit


@contextmanager
def _opened(uri: str) -> Iterator[Any]:
    """A local file is mapped, so that what the hash has read is not read again."""
    if uri.startswith("file://"):
        yield pa.memory_map(uri.removeprefix("file://"))
    else:
        with storage.open_binary(uri) as handle:
            yield handle


def _digest(uri: str) -> str:
    if not uri.startswith("file://"):
        return storage.sha256(uri)
    with (
        Path(uri.removeprefix("file://")).open("rb") as handle,
        mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        return hashlib.sha256(data).hexdigest()


def column_stats(column: Any, facts: Column, training: bool) -> Stats:
    """Counts, extremes and, of training rows, moments or categories of a piece of a column."""
    stats: Stats = {"nulls": column.null_count, "nans": 0, "infinities": 0, "minimum": None, "maximum": None}
    if facts.type == "string":
        return stats | {"categories": _categories(column) if training else []}
    if facts.type in ("date", "timestamp"):
        return stats | _dates(column, facts)
    if facts.number_type in NUMERIC:
        return stats | _numbers(column, facts, training)
    return stats


def _categories(column: Any) -> list[str] | None:
    different = pc.unique(column).drop_null()
    if pa.types.is_dictionary(different.type):
        different = different.cast(different.type.value_type)
    return None if len(different) > MOST_CATEGORIES else sorted(different.to_pylist())


def _dates(column: Any, facts: Column) -> Stats:
    kind, (low, high) = (pa.int32(), DAYS) if facts.type == "date" else (pa.int64(), MICROSECONDS)
    extremes = pc.min_max(column.cast(kind)).as_py()
    if extremes["min"] is None:
        return {}
    for value in extremes.values():
        if not low <= value <= high:
            raise SparkDDPError(
                "SDDP-210",
                f"the column {facts.name!r} holds a {facts.type} outside of the years 1 to 9999 "
                f"(about the year {_year(value, facts.type):,}).",
                "Filter such rows by where=…, or mend the column by columns={…: 'SQL expression'}.",
            )
    return {"minimum": _iso(extremes["min"], facts.type), "maximum": _iso(extremes["max"], facts.type)}


def _year(value: int, kind: str) -> int:
    days = value if kind == "date" else value / 86_400_000_000
    return math.floor(1970 + days / 365.2425)


def _iso(value: int, kind: str) -> str:
    if kind == "date":
        return (EPOCH.date() + dt.timedelta(days=value)).isoformat()
    return (EPOCH + dt.timedelta(microseconds=value)).isoformat()


def _numbers(column: Any, facts: Column, training: bool) -> Stats:
    """Without a look at each number where their sum is finite: then none of them is NaN or infinite."""
    if facts.length:
        column = pc.list_flatten(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    values = (column.drop_null() if column.null_count else column).to_numpy()
    total = _sum(values)
    counts: Stats = {}
    if not np.isfinite(total):
        rows = values.reshape(-1, facts.width)
        counts = {"nans": int(np.isnan(rows).any(axis=1).sum()), "infinities": int(np.isinf(rows).any(axis=1).sum())}
        values = values[np.isfinite(values)]
        total = _sum(values)
    if not len(values):
        return counts
    extremes = {"minimum": values.min().item(), "maximum": values.max().item()}
    return counts | extremes | (_moments(values, total) if training else {})


def _sum(values: Any) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(values.sum(dtype=np.float64))


def _moments(values: Any, total: float) -> Stats:
    """Number, mean, and sum of squared distances from the mean; both infinite where a double can't hold them."""
    mean = total / len(values)
    with np.errstate(over="ignore", invalid="ignore"):
        distance = np.subtract(values, mean, dtype=np.float64)
        return {"moments": [len(values), mean, float(np.dot(distance, distance))]}


def merged(parts: Sequence[Stats]) -> Stats:
    """Stats of several pieces as one."""
    low = [p["minimum"] for p in parts if p["minimum"] is not None]
    high = [p["maximum"] for p in parts if p["maximum"] is not None]
    found = {key: sum(p[key] for p in parts) for key in ("nulls", "nans", "infinities")}
    found |= {"minimum": min(low, default=None), "maximum": max(high, default=None)}
    lists = [p["categories"] for p in parts if "categories" in p]
    if lists:
        together: set[str] = set().union(*(part for part in lists if part))
        found["categories"] = None if None in lists or len(together) > MOST_CATEGORIES else sorted(together)
    moments = [p["moments"] for p in parts if "moments" in p]
    return found | ({"moments": _together(moments)} if moments else {})


def _together(moments: Sequence[Sequence[float]]) -> list[float]:
    """Chan, Golub and LeVeque (1979): stable, whatever the pieces' sizes."""
    if not all(math.isfinite(figure) for piece in moments for figure in piece):
        return [1, math.nan, math.nan]
    count, mean, squares = moments[0]
    for n, its_mean, its_squares in moments[1:]:
        delta, both = its_mean - mean, count + n
        squares += its_squares + delta * delta * count * n / both
        mean += delta * n / both
        count = both
    return [count, mean, squares]


def column(facts: Column, stats: Stats) -> Column:
    """The manifest's column from its type and its stats."""
    count, mean, squares = stats.get("moments") or (0, math.nan, math.nan)
    std = math.sqrt(squares / count) if math.isfinite(squares) else math.nan
    categories = stats.get("categories")
    return Column(
        facts.name,
        facts.type,
        nulls=stats["nulls"],
        nans=stats["nans"],
        infinities=stats["infinities"],
        minimum=stats["minimum"],
        maximum=stats["maximum"],
        mean=mean if math.isfinite(mean) else None,
        std=std if math.isfinite(std) else None,
        categories=None if categories is None else tuple(categories),
        element=facts.element,
        length=facts.length,
    )

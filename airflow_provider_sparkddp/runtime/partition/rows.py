"""Which columns and rows of a source are kept: projection, filter, sample and limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_sparkddp.spec.errors import SparkDDPError, nearest

# Hashes of rows are cut into so many buckets: a fraction is a number of them.
BUCKETS = 1_000_000


def project(frame: Any, columns: Sequence[str] | Mapping[str, str] | None, extra: Sequence[str]) -> Any:
    """Only the wanted columns, and those in `extra` that a split or a group needs.

    Args:
        columns: names, or name -> SQL expression over the source's columns; None for all.

    Raises:
        SparkDDPError: SDDP-204 for a column that is missing, stands there twice, or has a reserved or unsafe name.
    """
    available = list(frame.columns)
    _refuse_doubled(available)
    expressions = dict(columns) if isinstance(columns, Mapping) else {}
    names = list(dict.fromkeys([*(columns or available), *extra]))
    for name in names:
        if name not in expressions and name not in available:
            raise SparkDDPError(
                "SDDP-204",
                f"the column {name!r} is not in the source; it has: {', '.join(available)}.",
                f"{nearest(name, available)}Correct the name.",
            )
        _require_safe(name)
    _refuse_doubled(names)
    from pyspark.sql import functions as F

    return frame.select(*(F.expr(expressions[n]).alias(n) if n in expressions else F.col(quoted(n)) for n in names))


def _refuse_doubled(names: Sequence[str]) -> None:
    lowered = [name.lower() for name in names]
    doubled = sorted({name for name in names if lowered.count(name.lower()) > 1})
    if doubled:
        raise SparkDDPError(
            "SDDP-204",
            f"there are the columns {', '.join(doubled)}: the same name twice, for Spark ignores case.",
            "Rename or drop one in the source.",
        )


def _require_safe(name: str) -> None:
    if name.lower().startswith("sparkddp_") or "`" in name or "." in name or name != name.strip():
        raise SparkDDPError(
            "SDDP-204",
            f"the column name {name!r} holds a dot, a backtick or outer spaces, or begins with 'sparkddp_'.",
            "Rename it by columns={'new name': '`old name`', …}; letters, digits, '_', inner spaces and any alphabet are fine.",
        )


def quoted(name: str) -> str:
    """The name as SQL and `col` take it whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


def row_hash(columns: Sequence[str], *salt: Any) -> Any:
    """A hash of the named columns' values: the same for the same row, however the input is partitioned."""
    from pyspark.sql import functions as F

    return F.xxhash64(*(F.col(quoted(name)) for name in sorted(columns)), *(F.lit(s) for s in salt))


def kept(frame: Any, where: str | None, sample: float | None, limit: int | None, seed: int) -> Any:
    """The rows that fulfil the condition; of these a share by a hash of the row, not by `rand()`; of these so many at most."""
    from pyspark.sql import functions as F

    if where:
        frame = frame.where(where)
    if sample is not None:
        bucket = F.pmod(row_hash(frame.columns, seed, "sample"), F.lit(BUCKETS))
        frame = frame.where(bucket < F.lit(max(1, round(sample * BUCKETS))))
    return frame if limit is None else frame.limit(limit)

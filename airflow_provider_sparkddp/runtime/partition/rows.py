"""Which columns and rows of a source are kept: projection, filter, sample and limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_sparkddp.spec.columns import require_present, require_safe, require_single

# Hashes of rows are cut into so many buckets: a fraction is a number of them.
BUCKETS = 1_000_000


def project(frame: Any, columns: Sequence[str] | Mapping[str, str] | None, extra: Sequence[str]) -> Any:
    """Only the wanted columns, and those in `extra` that a split or a group needs.

    Args:
        columns: names, or name -> SQL expression over the source's columns; None for all.

    Raises:
        SparkDDPError: SDDP-204 for a column that is missing, stands there twice, or has a reserved or unsafe name.
    """
    from pyspark.sql import functions as F

    available = list(frame.columns)
    require_single(available, "the source")
    expressions = dict(columns) if isinstance(columns, Mapping) else {}
    names = list(dict.fromkeys([*(columns or available), *extra]))
    known = [*available, *expressions]
    require_present(list(columns or ()), known, "the source", "columns")
    require_present(extra, known, "the source", "validation, test, group_by or order_by")
    require_safe(names)
    require_single(names, "what is kept")
    return frame.select(*(F.expr(expressions[n]).alias(n) if n in expressions else F.col(quoted(n)) for n in names))


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

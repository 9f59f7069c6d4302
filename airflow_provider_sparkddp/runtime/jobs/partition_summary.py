"""What a partition job tells of its manifest: the table that a person wants."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_sparkddp.runtime.jobs.outcome import table
from airflow_provider_sparkddp.spec.manifests import TRAIN, Column, Manifest

MOST_RANKS, MOST_COLUMNS = 50, 100


def summary(manifest: Manifest, seconds: Mapping[str, float]) -> list[str]:
    """Rows and bytes a rank, skew, what each column holds, encoders, and where the time went."""
    splits = list(manifest.shares)
    rows = {split: manifest.rank_rows(split) for split in splits}
    sizes = {split: manifest.rank_bytes(split) for split in splits}
    ranks = range(min(manifest.world_size, MOST_RANKS))
    body = [[rank, *(figure[split][rank] for split in splits for figure in (rows, sizes))] for rank in ranks]
    header = ["rank", *(f"{split} {what}" for split in splits for what in ("rows", "bytes"))]
    mean = manifest.rows(TRAIN) / manifest.world_size
    left = manifest.world_size - len(ranks)
    return [
        f"{manifest.source}: {sum(f.rows for f in manifest.files):,} rows in {len(manifest.files):,} files, "
        f"{sum(f.bytes for f in manifest.files):,} bytes",
        *table(header, body),
        *([f"… and {left:,} more ranks"] if left > 0 else []),
        f"largest rank / mean: {max(rows[TRAIN]) / mean:.3f}",
        "",
        *columns(manifest),
        "",
        *table(["phase", "seconds"], [[name, round(value, 1)] for name, value in seconds.items()]),
    ]


def columns(manifest: Manifest) -> list[str]:
    shown = manifest.columns[:MOST_COLUMNS]
    body = [
        [
            c.name,
            _type(c),
            c.nulls,
            c.nans,
            c.infinities,
            _exact(c.minimum),
            _exact(c.maximum),
            _exact(c.mean),
            _exact(c.std),
            _encoder(manifest, c),
        ]
        for c in shown
    ]
    left = len(manifest.columns) - len(shown)
    return [
        *table(["column", "type", "nulls", "NaN", "infinities", "minimum", "maximum", "mean", "std", "encoded"], body),
        *([f"… and {left:,} more columns"] if left > 0 else []),
    ]


def _exact(figure: float | int | str | None) -> str | None:
    """With as many digits as tell numbers around a large mean apart."""
    return f"{figure:,.10g}" if isinstance(figure, float) else f"{figure:,}" if isinstance(figure, int) else figure


def _type(column: Column) -> str:
    return f"{column.element}[{column.length}]" if column.type == "array" else column.type


def _encoder(manifest: Manifest, column: Column) -> str | None:
    encoder = manifest.encoders.get(column.name)
    if encoder is None:
        return None
    return f"index of {len(encoder['values']):,}" if encoder["kind"] == "index" else "standardized"

"""A Spark table becomes Parquet files and a manifest that says which rank reads what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.data import shards
from airflow_provider_sparkddp.runtime.jobs.cluster import prove_shared
from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome, table
from airflow_provider_sparkddp.runtime.partition import sources, write
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.manifests import SPLITS, TRAIN, VALIDATION, Column, Manifest, PartFile

# XCom lies in Airflow's database: above this many names it holds a pointer to the manifest alone.
NAMES_IN_XCOM = 500


def run(spark: Any, job: Job, still_wanted: Callable[[], None]) -> Outcome:
    """Read, split, write, describe, and commit the manifest last.

    Raises:
        SparkDDPError: codes 201 to 206, 301, 302, 308.
    """
    outcome, settings = Outcome(), job.settings
    world_size = settings["num_nodes"] * settings["devices"]
    folder = paths.join(job.directory, paths.DATA)
    with outcome.phase("check storage"):
        prove_shared(spark, job)
    with outcome.phase("read source"):
        frame, types = _prepared(spark, settings)
    with outcome.phase("write partitions"):
        _write(frame, folder, world_size, settings["source"])
    with outcome.phase("describe files"):
        files, columns = write.described(spark, folder, types)
    _require_rows(files, settings)
    used = [split for split in SPLITS if any(f.split == split for f in files)]
    manifest = Manifest(
        num_nodes=settings["num_nodes"],
        devices=settings["devices"],
        seed=settings["seed"],
        columns=tuple(columns),
        files=tuple(files),
        shares={split: shards.deal(files, split, world_size) for split in used},
        source=sources.describe(settings["source"]),
    )
    still_wanted()
    uri = paths.join(job.directory, paths.MANIFEST)
    storage.write_text(uri, manifest.to_text())
    outcome.values, outcome.summary = _values(manifest, uri), _summary(manifest)
    return outcome


def _prepared(spark: Any, settings: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
    """The source's wanted columns with the split's name, and the types of the columns that are kept."""
    validation = settings["validation"]
    deciding = write.split_column(validation)
    # The split's own column is needed to decide; as {"column": …} it is constant in each split, and so not kept.
    extra = [deciding] if deciding else []
    frame = sources.project(sources.read(spark, settings["source"]), settings["columns"], extra)
    types = write.column_types(frame)
    split = write.with_split(frame, validation, settings["seed"])
    if isinstance(validation, Mapping) and "column" in validation:
        split = split.drop(deciding)
        types.pop(str(deciding))
    return split, types


def _write(frame: Any, folder: str, world_size: int, source: Mapping[str, Any]) -> None:
    """Raises SparkDDPError SDDP-203: Spark reads lazily, so what is wrong with the source shows here."""
    try:
        write.write(frame, folder, world_size)
    except Exception as error:
        raise sources.unreadable(source, error) from error


def _require_rows(files: list[PartFile], settings: Mapping[str, Any]) -> None:
    rows = {split: sum(f.rows for f in files if f.split == split) for split in {f.split for f in files}}
    undecided = sum(count for split, count in rows.items() if split not in SPLITS)
    if undecided:
        raise SparkDDPError(
            "SDDP-206",
            f"validation={settings['validation']!r} is decided by a column that is null in {undecided} rows.",
            "Fill or drop those rows in the source.",
        )
    if not sum(rows.values()):
        raise SparkDDPError(
            "SDDP-201",
            f"{sources.describe(settings['source'])} gave no rows.",
            "Check the path, the table or the filter; nothing was published.",
        )
    if not rows.get(TRAIN):
        raise SparkDDPError(
            "SDDP-201",
            f"all {rows[VALIDATION]} rows are for validation, none for training.",
            f"Change validation={settings['validation']!r}.",
        )
    if settings["validation"] is not None and not rows.get(VALIDATION):
        raise SparkDDPError(
            "SDDP-201",
            f"validation={settings['validation']!r} holds out no row of {rows[TRAIN]}.",
            "Change validation, or set validation=None to train without.",
        )


def _values(manifest: Manifest, uri: str) -> dict[str, Any]:
    names = [f.name for f in manifest.files]
    return {
        "manifest": uri,
        "files": names if len(names) <= NAMES_IN_XCOM else [],
        "num_files": len(names),
        "rows": {split: manifest.rank_rows(split) for split in manifest.shares} if manifest.world_size <= 500 else {},
        "total_rows": {split: manifest.rows(split) for split in manifest.shares},
        "bytes": sum(f.bytes for f in manifest.files),
        "num_nodes": manifest.num_nodes,
        "devices": manifest.devices,
    }


def _summary(manifest: Manifest) -> list[str]:
    splits = list(manifest.shares)
    rows = {split: manifest.rank_rows(split) for split in splits}
    sizes = {split: manifest.rank_bytes(split) for split in splits}
    ranks = range(min(manifest.world_size, 50))
    body = [[rank, *(figure[split][rank] for split in splits for figure in (rows, sizes))] for rank in ranks]
    header = ["rank", *(f"{split} {what}" for split in splits for what in ("rows", "bytes"))]
    mean = manifest.rows(TRAIN) / manifest.world_size
    gaps = [_gap_line(column) for column in manifest.columns if column.nulls or column.nans or column.infinities]
    return [
        f"{manifest.source}: {sum(f.rows for f in manifest.files):,} rows in {len(manifest.files)} files",
        *table(header, body),
        f"largest rank / mean: {max(rows[TRAIN]) / mean:.3f}",
        *gaps,
    ]


def _gap_line(column: Column) -> str:
    return f"column {column.name}: {column.nulls:,} nulls, {column.nans:,} NaN, {column.infinities:,} infinities"

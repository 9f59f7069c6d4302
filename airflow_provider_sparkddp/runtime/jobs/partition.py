"""A Spark table becomes Parquet files and a manifest that says which rank reads what."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.data import encoders, shards
from airflow_provider_sparkddp.runtime.jobs.cluster import prove_shared
from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome
from airflow_provider_sparkddp.runtime.jobs.partition_summary import summary
from airflow_provider_sparkddp.runtime.lifecycle import cleaning, retention, reuse
from airflow_provider_sparkddp.runtime.partition import (
    arrow_writer,
    counts,
    drift,
    groups,
    rows,
    splits,
    types,
    write,
    xcom,
)
from airflow_provider_sparkddp.runtime.sources import mismatches, reading
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.checks.splits import deciding_columns
from airflow_provider_sparkddp.spec.columns import require_present
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.manifests import SPLITS, TEST, VALIDATION, Column, Manifest
from airflow_provider_sparkddp.spec.references import manifest_uri
from airflow_provider_sparkddp.storage.manifests import read_manifest


@dataclass
class Prepared:
    """The rows to write: with the split's name, usable types, and nothing that isn't wanted."""

    frame: Any
    types: dict[str, Column]
    lines: list[str] = field(default_factory=list)
    packing: groups.Packing | None = None


def run(spark: Any, job: Job, still_wanted: Callable[[], None]) -> Outcome:
    """Read, split, place, write, describe, and commit the manifest last; or return the earlier one where nothing has changed.

    Raises:
        SparkDDPError: codes 101, 112, 201 to 213, 301, 302, 308, 310.
    """
    outcome, settings = Outcome(), job.settings
    with outcome.phase("check storage"):
        prove_shared(spark, job)
    compared = manifest_uri(settings["compare_with"], "compare_with") if settings["compare_with"] else None
    earlier = read_manifest(compared) if compared else None
    with outcome.phase("read source", spark):
        frame = reading.read(spark, settings["source"])
        fingerprint = reuse.fingerprint(spark, job, frame) if settings["reuse"] else None
    found = reuse.earlier(job, fingerprint) if fingerprint else None
    if found:
        uri, manifest = found
        lines = [f"reused: source, settings and code are unchanged since {uri} was written; nothing was written"]
    else:
        prepared, manifest = _made(frame, job, outcome)
        uri, lines = paths.join(job.directory, paths.MANIFEST), prepared.lines
    drifted = drift.compare(earlier, compared, manifest.columns) if compared and earlier else None
    if drifted:
        lines += drifted.lines()
        _require_no_drift(drifted, settings, [*summary(manifest, outcome.seconds), *lines])
    if not found:
        with outcome.phase("publish manifest"):
            still_wanted()
            storage.write_text(uri, manifest.to_text())
        lines += reuse.publish(job, fingerprint, uri) if fingerprint else []
    with outcome.phase("clean up"):
        lines += cleaning.clean(job, manifest)
        lines += retention.expire(job, settings["retention"], time.time(), keep=uri)
    more = {"drift": drifted.to_json()} if drifted else {}
    outcome.values = xcom.values(manifest, uri, reused=bool(found), more=more)
    outcome.summary = [*summary(manifest, outcome.seconds), *lines]
    return outcome


def _require_no_drift(drifted: drift.Drift, settings: Mapping[str, Any], told: list[str]) -> None:
    """Raises SparkDDPError SDDP-211 with the whole summary, so that the log shows what changed."""
    try:
        drift.require(drifted, settings["drift"] or {})
    except SparkDDPError as error:
        raise SparkDDPError(error.code, error.message, error.remedy, {**error.details, "summary": told}) from None


def _made(frame: Any, job: Job, outcome: Outcome) -> tuple[Prepared, Manifest]:
    """The files in the try's folder, and the manifest over them, which isn't written yet."""
    settings, spark = job.settings, frame.sparkSession
    folder, layout = paths.join(job.directory, paths.DATA), write.layout(settings)
    writer = arrow_writer.choose(spark, folder, settings["writer"])
    with outcome.phase("check source", spark):
        prepared = _prepared(frame, settings)
    with outcome.phase("plan groups" if layout.binned else "plan files", spark), _told(spark, settings):
        counts.require_enough(prepared.frame, settings, layout.files * len(layout.splits))
        placed = _placed(prepared, settings, layout)
    with outcome.phase("write partitions", spark), _told(spark, settings):
        written = write.written(_write(placed, folder, list(prepared.types), layout, writer), layout)
    with outcome.phase("describe files", spark), _told(spark, settings):
        found = write.described(spark, folder, written, prepared.types, settings["encode"] or {})
    counts.require_rows(found.files, settings)
    total = sum(f.rows for f in found.files)
    prepared.lines += counts.null_lines(found.columns, total)
    if prepared.packing:
        prepared.lines += groups.changed_lines(prepared.packing, total)
    return prepared, _manifest(settings, found)


@contextmanager
def _told(spark: Any, settings: Mapping[str, Any], argument: str | None = None) -> Iterator[None]:
    """Spark reads lazily, so what is wrong with the source may show wherever rows move.

    Args:
        argument: name of the one that holds the SQL expression at work: then it is told, and files aren't looked into.

    Raises:
        SparkDDPError: SDDP-203, 212, 301, 308 or 310 by what is at fault.
    """
    try:
        yield
    except SparkDDPError:
        raise
    except Exception as error:
        what = f"{argument}={settings[argument]!r}" if argument else None
        raise reading.failed(settings["source"], error, what=what, spark=None if what else spark) from error


def _prepared(frame: Any, settings: Mapping[str, Any]) -> Prepared:
    """The source's wanted rows and columns with the split's name, and the types of the columns that are kept."""
    spark, validation, test = frame.sparkSession, settings["validation"], settings["test"]
    grouped, ordered = settings["group_by"] or [], settings["order_by"] or []
    needed = [*deciding_columns(validation, test), *grouped, *ordered]
    with _told(spark, settings, "columns"):
        kept = rows.project(frame, settings["columns"], needed)
    kept, kinds = types.usable(kept)
    _require_encodable(settings["encode"] or {}, kinds)
    with _told(spark, settings, "where"):
        kept = rows.kept(kept, settings["where"], settings["sample"], settings["limit"], settings["seed"])
    with _told(spark, settings):
        lines = mismatches.findings(spark, settings["source"], frame)
        kinds = types.with_lengths(kept, kinds)
        kept = splits.with_splits(kept, validation, test, settings["seed"], grouped, ordered)
    flags = splits.flag_columns(validation, test)
    return Prepared(kept.drop(*flags), {name: kind for name, kind in kinds.items() if name not in flags}, lines)


def _require_encodable(encode: Mapping[str, str], kinds: Mapping[str, Column]) -> None:
    require_present(list(encode), list(kinds), "what is kept", "encode, or add it to columns")
    for name, kind in encode.items():
        encoders.require_encodable(name, kind, kinds[name].type)


def _placed(prepared: Prepared, settings: Mapping[str, Any], layout: write.Layout) -> Any:
    """The rows in the partitions in which they are to be written; one exchange at most."""
    frame, grouped, ordered = prepared.frame, settings["group_by"], settings["order_by"] or []
    if not grouped:
        seed = settings["seed"]
        return write.exchanged(frame, write.hashed(frame, layout.files, seed), layout) if settings["shuffle"] else frame
    ranks = settings["num_nodes"] * settings["devices"]
    packing = prepared.packing = groups.plan(frame, grouped, ranks, settings["files_per_rank"])
    torn = [split for split in (VALIDATION, TEST) if isinstance(settings[split], Mapping)]
    prepared.lines += groups.lines(frame, packing, grouped, ranks, torn)
    joined, bins = groups.binned(frame, packing, grouped, layout.files)
    return write.exchanged(joined, bins, layout).sortWithinPartitions(*map(rows.quoted, [*grouped, *ordered]))


def _write(frame: Any, folder: str, columns: list[str], layout: write.Layout, writer: str) -> list[str]:
    """The names of all that was written, relative to the folder."""
    kept = frame.select(*map(rows.quoted, columns), splits.SPLIT)
    if writer == arrow_writer.ARROW:
        return arrow_writer.write(kept, folder, columns, layout.compression, layout.row_group_rows)
    write.write(kept, folder, layout)
    return storage.files_below(folder)


def _manifest(settings: Mapping[str, Any], found: write.Described) -> Manifest:
    """Raises SparkDDPError SDDP-202 where a rank would have nothing to read."""
    ranks, used = (
        settings["num_nodes"] * settings["devices"],
        [s for s in SPLITS if any(f.split == s for f in found.files)],
    )
    bins = settings["files_per_rank"] if settings["group_by"] else None
    return Manifest(
        num_nodes=settings["num_nodes"],
        devices=settings["devices"],
        seed=settings["seed"],
        columns=tuple(found.columns),
        files=tuple(found.files),
        shares={split: shards.deal(found.files, split, ranks, bins) for split in used},
        source=reading.describe(settings["source"]),
        group_by=tuple(settings["group_by"] or ()),
        order_by=tuple(settings["order_by"] or ()),
        encoders=found.encoders,
    )

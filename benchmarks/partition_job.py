"""The partition job, run on a Spark session as its entry would, and what it left behind."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.jobs import partition
from airflow_provider_sparkddp.spec import jobs, paths
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.manifests import Manifest
from benchmarks.measure import Figures
from benchmarks.session import same_settings

DEFAULTS: dict[str, Any] = {**jobs.defaults(jobs.PARTITION), "validation": None}


def partition_job(folder: Path, source: Path, settings: Mapping[str, Any]) -> Job:
    """A checked job that reads the Parquet table at `source` and writes into the folder."""
    read = {"format": "parquet", "path": f"file://{source}"}
    checked = jobs.check(jobs.PARTITION, {**DEFAULTS, "source": read, **settings})
    return Job(jobs.PARTITION, uuid.uuid4().hex[:12], f"file://{folder}", "benchmark", (), checked)


def partitioned(spark: Any, source: Path, **settings: Any) -> Callable[[Path], Figures]:
    """The whole job as a variant's work: manifest and statistics are part of it. Gives the seconds of its phases."""

    def work(folder: Path) -> Figures:
        with same_settings(spark):
            return partition.run(spark, partition_job(folder, source, settings), still_wanted).seconds

    return work


def still_wanted() -> None:
    """Nobody takes a benchmark's job back."""


def written_manifest(folder: Path) -> Manifest:
    uri = paths.join(f"file://{folder}", paths.MANIFEST)
    return Manifest.from_text(storage.read_text(uri), uri)


def require_rows(manifest: Manifest, rows: int) -> None:
    """Raises RuntimeError: a job that loses rows may be fast, and is no measure."""
    found = sum(file.rows for file in manifest.files)
    if found != rows:
        raise RuntimeError(f"the job wrote {found:,} of {rows:,} rows")

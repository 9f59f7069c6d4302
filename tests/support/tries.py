"""Folders of tries as partition jobs leave them, without Spark."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.manifests import TRAIN, Manifest, PartFile, Piece

DAG, TASK = "flights", "partition"
LISTED = ("sparkddp_split=train/part-00000-a.parquet", "sparkddp_split=train/part-00001-a.parquet")
BYTES = b"four"


def job(
    root: Path, run: str = "now", number: int = 1, nonce: str = "abc", run_dir: Path | None = None, **facts: Any
) -> Job:
    """A partition job of the DAG run in the default run_dir below `root`, or in `run_dir`."""
    uri = run_dir.as_uri() if run_dir else paths.default_run_dir(root.as_uri(), DAG, run)
    task, map_index = facts.pop("task", TASK), facts.pop("map_index", -1)
    folder = paths.TryDir.of(uri, task, map_index, number, nonce).uri
    settings = {
        "run_dir": run_dir.as_uri() if run_dir else None,
        "storage_root": root.as_uri(),
        "source": {"table": "t"},
    }
    owner = paths.owner(DAG, run, task, map_index)
    made = Job("partition", nonce, folder, f"{DAG}.{task}", (), settings, owner)
    return replace(made, **facts)


def folder(job: Job) -> Path:
    return Path(job.directory.removeprefix("file://"))


def manifest() -> Manifest:
    files = tuple(PartFile(f"data/{name}", TRAIN, 2, len(BYTES), "0" * 64, (2,)) for name in LISTED)
    shares = {TRAIN: ((Piece(0, 0, 0, 2),), (Piece(1, 0, 0, 2),))}
    return Manifest(2, 1, 0, (), files, shares, "table t")


def lay(job: Job, committed: bool = True, written: float | None = None, extra: tuple[str, ...] = ()) -> str:
    """job.json and data, and where it is committed the manifest, written at that time; the manifest's URI.

    Args:
        written: seconds since 1970.
        extra: more files below data/.
    """
    for name in (*LISTED, *extra):
        path = folder(job) / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(BYTES)
    (folder(job) / "job.json").write_text(job.to_text())
    path = folder(job) / "manifest.json"
    if committed:
        path.write_text(manifest().to_text())
    if committed and written is not None:
        os.utime(path, (written, written))
    return path.as_uri()


def below(job: Job) -> set[str]:
    """All files of the try's folder."""
    root = folder(job)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


WHOLE = {"job.json", "manifest.json", *(f"data/{name}" for name in LISTED)}

"""Small manifests and jobs for tests that need one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.manifests import TRAIN, Column, Manifest, PartFile, Piece

COLUMNS = (
    Column("delay", "double", minimum=-3.5, maximum=120.25),
    Column("hour", "int", minimum=0, maximum=23),
    Column("late", "boolean", minimum=0, maximum=1),
    Column("carrier", "string"),
)


def part_file(rows: Sequence[int], split: str = TRAIN, name: str = "data/part-0.parquet") -> PartFile:
    """A file with these rows in its row groups."""
    return PartFile(name, split, sum(rows), 100 * sum(rows), "0" * 64, tuple(rows))


def manifest(columns: Sequence[Column] = COLUMNS) -> Manifest:
    """Two ranks, one file each."""
    files = (part_file([3, 2], name="data/a.parquet"), part_file([4], name="data/b.parquet"))
    shares = {TRAIN: ((Piece(0, 0, 0, 3), Piece(0, 1, 0, 2)), (Piece(1, 0, 0, 4),))}
    return Manifest(2, 1, 7, tuple(columns), files, shares, "table flights")


def with_column(column: Column) -> Manifest:
    """The same, with one more column."""
    return replace(manifest(), columns=(*COLUMNS, column))


def job(directory: str, kind: str = "export", nonce: str = "abc123") -> Job:
    return Job(kind, nonce, directory, "dag.task", (), {"model": "file:///nowhere"})

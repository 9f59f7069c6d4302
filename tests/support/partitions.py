"""Small manifests with real Parquet files, without Spark."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_sparkddp.runtime.data import describe
from airflow_provider_sparkddp.runtime.data.shards import deal
from airflow_provider_sparkddp.spec.manifests import SPLITS, Column, Manifest, PartFile

TYPES = {"double": "double", "int64": "long", "int32": "int", "float": "float", "bool": "boolean", "string": "string"}
Rows = Mapping[str, Sequence[Any]]


def write(folder: Path, train: Sequence[Rows], validation: Sequence[Rows] = (), row_group_size: int = 3) -> str:
    """One file for each of the tables, and the manifest over all; the manifest's URI."""
    (folder / "data").mkdir(parents=True)
    tables = [("train", pa.table(dict(rows))) for rows in train]
    tables += [("validation", pa.table(dict(rows))) for rows in validation]
    files = [_file(folder, f"part-{i}", split, table, row_group_size) for i, (split, table) in enumerate(tables)]
    columns = tuple(_column(pa.concat_tables([t for _, t in tables]), name) for name in tables[0][1].column_names)
    with_rows = [split for split in SPLITS if any(file.split == split for file in files)]
    shares = {split: deal(files, split, 1) for split in with_rows}
    manifest = Manifest(1, 1, 0, columns, tuple(files), {split: shares.get(split, ((),)) for split in SPLITS}, "a test")
    (folder / "manifest.json").write_text(manifest.to_text())
    return (folder / "manifest.json").as_uri()


def _file(folder: Path, name: str, split: str, table: pa.Table, row_group_size: int) -> PartFile:
    path = folder / "data" / f"{name}.parquet"
    pq.write_table(table, path, row_group_size=row_group_size)
    data, facts = path.read_bytes(), pq.ParquetFile(path).metadata
    groups = tuple(facts.row_group(index).num_rows for index in range(facts.num_row_groups))
    digest = hashlib.sha256(data).hexdigest()
    return PartFile(f"data/{path.name}", split, table.num_rows, len(data), digest, groups)


def _column(table: pa.Table, name: str) -> Column:
    column = table.column(name)
    kind = TYPES[str(column.type)]
    return Column(name, kind, **describe._column_stats(column, kind != "string"))

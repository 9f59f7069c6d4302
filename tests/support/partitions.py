"""Small manifests with real Parquet files, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_sparkddp.runtime.data.shards import deal
from airflow_provider_sparkddp.runtime.partition import describe
from airflow_provider_sparkddp.spec.manifests import SPLITS, TRAIN, VALIDATION, Column, Manifest, PartFile

# Arrow's name of a type -> Spark's.
TYPES = {"double": "double", "int64": "long", "int32": "int", "float": "float", "bool": "boolean", "string": "string"}
Rows = Mapping[str, Sequence[Any]]


def write(folder: Path, train: Sequence[Rows], validation: Sequence[Rows] = (), row_group_size: int = 3) -> str:
    """One file for each of the tables, and the manifest over all; the manifest's URI."""
    (folder / "data").mkdir(parents=True)
    tables = [(TRAIN, pa.table(dict(rows))) for rows in train]
    tables += [(VALIDATION, pa.table(dict(rows))) for rows in validation]
    types = {field.name: Column(field.name, TYPES[str(field.type)]) for field in tables[0][1].schema}
    files, stats = [], []
    for index, (split, table) in enumerate(tables):
        path = folder / "data" / f"part-{index}.parquet"
        pq.write_table(table, path, row_group_size=row_group_size)
        facts, _ = describe.parquet_file(path.as_uri(), types, {}, split == TRAIN)
        stats.append(facts.pop("columns"))
        groups = tuple(facts.pop("row_groups"))
        files.append(PartFile(f"data/{path.name}", split, sum(groups), row_groups=groups, **facts))
    columns = tuple(describe.column(kind, describe.merged([s[name] for s in stats])) for name, kind in types.items())
    shares = {split: deal(files, split, 1) if any(f.split == split for f in files) else ((),) for split in SPLITS}
    manifest = Manifest(1, 1, 0, columns, tuple(files), shares, "a test")
    (folder / "manifest.json").write_text(manifest.to_text())
    return (folder / "manifest.json").as_uri()

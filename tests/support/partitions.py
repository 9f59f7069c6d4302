"""Small manifests with real Parquet files, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_sparkddp.runtime.data.encoders import encoder, merge_fits
from airflow_provider_sparkddp.runtime.data.shards import deal
from airflow_provider_sparkddp.runtime.partition import describe
from airflow_provider_sparkddp.spec.manifests import SPLITS, TEST, TRAIN, VALIDATION, Column, Manifest, PartFile

# Arrow's name of a type -> Spark's.
TYPES = {"double": "double", "int64": "long", "int32": "int", "float": "float", "bool": "boolean", "string": "string"}
Rows = Mapping[str, Sequence[Any]]


def write(
    folder: Path,
    train: Sequence[Rows],
    validation: Sequence[Rows] = (),
    row_group_size: int = 3,
    *,
    test: Sequence[Rows] = (),
    encode: Mapping[str, str] | None = None,
) -> str:
    """One file for each of the tables, and the manifest over all; the manifest's URI.

    Args:
        encode: column -> kind of encoder, fitted on the training tables.
    """
    (folder / "data").mkdir(parents=True)
    splits = {TRAIN: train, VALIDATION: validation, TEST: test}
    tables = [(split, pa.table(dict(rows))) for split, many in splits.items() for rows in many]
    types = {name: column_of(name, tables[0][1].column(name)) for name in tables[0][1].column_names}
    files, stats, fits = [], [], []
    for index, (split, table) in enumerate(tables):
        path = folder / "data" / f"part-{index}.parquet"
        pq.write_table(table, path, row_group_size=row_group_size)
        facts, fit = describe.parquet_file(path.as_uri(), types, encode or {}, split == TRAIN)
        fits.append(fit)
        stats.append(facts.pop("columns"))
        groups = tuple(facts.pop("row_groups"))
        files.append(PartFile(f"data/{path.name}", split, sum(groups), row_groups=groups, **facts))
    columns = tuple(describe.column(kind, describe.merged([s[name] for s in stats])) for name, kind in types.items())
    shares = {split: deal(files, split, 1) if any(f.split == split for f in files) else ((),) for split in SPLITS}
    encoders = {
        name: encoder(name, kind, merge_fits(kind, [fit[name] for fit in fits if name in fit]))
        for name, kind in (encode or {}).items()
    }
    manifest = Manifest(1, 1, 0, columns, tuple(files), shares, "a test", encoders=encoders)
    (folder / "manifest.json").write_text(manifest.to_text())
    return (folder / "manifest.json").as_uri()


def column_of(name: str, values: pa.ChunkedArray) -> Column:
    """The column's name and type, without statistics."""
    if not pa.types.is_list(values.type):
        return Column(name, TYPES[str(values.type)])
    return Column(name, "array", element=TYPES[str(values.type.value_type)], length=len(values[0]))

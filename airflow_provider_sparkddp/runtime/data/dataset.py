"""A rank's rows as tensors, and a loader that gives every rank the same number of non-empty batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.data.encoders import encoded, width
from airflow_provider_sparkddp.runtime.data.shards import batch_bounds
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import Manifest, PartFile, Share, data_uri


def read_share(manifest: Manifest, manifest_uri: str, share: Share, columns: Sequence[str]) -> pa.Table:
    """Exactly the pieces of the share, in its order, with the columns in the given order; whatever else lies in the folder.

    Raises:
        SparkDDPError: SDDP-209 when a file is missing or its bytes changed since the manifest was written.
    """
    tables = []
    for index in dict.fromkeys(piece.file for piece in share):
        parquet = pq.ParquetFile(pa.BufferReader(_verified(manifest.files[index], manifest_uri)))
        for piece in (p for p in share if p.file == index):
            group = parquet.read_row_group(piece.row_group, columns=list(columns))
            tables.append(group.slice(piece.start, piece.rows).select(list(columns)))
    return pa.concat_tables(tables)


def _verified(file: PartFile, manifest_uri: str) -> bytes:
    uri = data_uri(manifest_uri, file)
    try:
        data = storage.read_bytes(uri)
    except FileNotFoundError:
        raise SparkDDPError(
            "SDDP-209", f"the partition file {uri} of the manifest is missing.", "Run the partition task again."
        ) from None
    if len(data) != file.bytes or hashlib.sha256(data).hexdigest() != file.sha256:
        raise SparkDDPError(
            "SDDP-209",
            f"the partition file {uri} has other bytes than when the manifest was written.",
            "Run the partition task again; nothing else may write into its folder.",
        )
    return data


Encoders = Mapping[str, Mapping[str, Any]]


def matrix(table: pa.Table, columns: Sequence[str], dtype: Any = np.float32, encoders: Encoders | None = None) -> Any:
    """The columns side by side, shape (rows, width of all), one contiguous block.

    An array column of n numbers a row is n wide, any other 1. Columns without an index hold no nulls.

    Args:
        encoders: column -> what stands in the manifest or the model for it; the others' numbers are taken as they are.

    Raises:
        SparkDDPError: SDDP-205 for an array column with a null, or with rows of different lengths.
    """
    widths = [_named(name, width, table.column(name)) for name in columns]
    out = np.empty((table.num_rows, sum(widths)), dtype=dtype)
    start = 0
    for name, size in zip(columns, widths, strict=True):
        values = _named(name, encoded, table.column(name), (encoders or {}).get(name), dtype)
        out[:, start : start + size] = values.reshape(table.num_rows, size)
        start += size
    return out


def _named(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except ValueError as error:
        raise SparkDDPError(
            "SDDP-205",
            f"column {name!r} is no array of one length: {error}.",
            "Give each row the same count of numbers, and no nulls, in the source; then partition again.",
        ) from None


def tensors(
    table: pa.Table, features: Sequence[str], target: str, dtype: torch.dtype, encoders: Encoders | None = None
) -> tuple[Any, Any]:
    """x of shape (rows, width of all features), encoded, and y of shape (rows,), raw, both of the training's dtype.

    Raises:
        SparkDDPError: SDDP-205 as `matrix`.
    """
    kind = np.float64 if dtype == torch.float64 else np.float32
    x, y = matrix(table, features, kind, encoders), matrix(table, [target], kind)[:, 0]
    return torch.from_numpy(x), torch.from_numpy(y)


class RankLoader:
    """Batches `(x, y)` of one rank's rows: x (batch, width of all features), y (batch,).

    Its length is the same on every rank, no batch is empty, and an epoch holds every row once. Shuffled by seed, epoch and rank.

    Args:
        num_steps: batches an epoch, as all ranks computed it.
        seed: of the manifest; None keeps the rows in their order, as for validation.
    """

    def __init__(self, x: Any, y: Any, num_steps: int, seed: int | None, rank: int) -> None:
        self.x, self.y, self.seed, self.rank = x, y, seed, rank
        self.bounds = batch_bounds(len(x), num_steps)
        self.epoch = 0
        # Lightning calls `loader.sampler.set_epoch()`, and looks for the batch sampler of whatever has a sampler.
        self.sampler = self
        self.batch_sampler = None

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.bounds)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        order = self._order()
        for start, stop in self.bounds:
            rows = slice(start, stop) if order is None else order[start:stop]
            yield self.x[rows], self.y[rows]

    def _order(self) -> Any:
        if self.seed is None:
            return None
        text = f"{self.seed}/{self.epoch}/{self.rank}".encode()
        generator = torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(text).digest()[:7], "big"))
        return torch.randperm(len(self.x), generator=generator)


def sample_rows(x: Any, limit: int) -> Any:
    """Up to `limit` rows, spread evenly over the tensor."""
    if len(x) <= limit:
        return x
    return x[torch.linspace(0, len(x) - 1, limit).long()]

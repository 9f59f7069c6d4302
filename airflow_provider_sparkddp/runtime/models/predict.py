"""Raw rows in, one column out: inputs go to the model by name in the trained order, whatever the table's order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from airflow_provider_sparkddp.runtime.data.dataset import Encoders, matrix
from airflow_provider_sparkddp.runtime.data.encoders import INDEX, is_list, is_text, numbers_of
from airflow_provider_sparkddp.runtime.models.bundle import ColumnFacts
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import FLOAT32_EXACT

BATCH = 8192


def forward(module: Any, x: Any, call: Callable[[Any], Any] | None = None) -> Any:
    """The module's output for x (rows, features), in eval mode, in the number format of its weights, as float32 or float64.

    Args:
        call: what is called in place of the module, as for one that is spread over ranks.

    Raises:
        SparkDDPError: SDDP-504 when the output is not one tensor with a row for each row.
    """
    wanted = number_format(module) or x.dtype
    was_training = module.training
    module.eval()
    try:
        with torch.inference_mode():
            parts = [(call or module)(batch.to(wanted)) for batch in torch.split(x, BATCH)]
    finally:
        module.train(was_training)
    if not parts or not all(isinstance(part, torch.Tensor) for part in parts):
        raise _unusable(f"a {type(parts[0]).__name__}" if parts else "nothing")
    out = torch.cat([part.reshape(1) if part.ndim == 0 else part for part in parts])
    out = out.squeeze(1) if out.ndim == 2 and out.shape[1] == 1 else out
    if len(out) != len(x) or out.ndim > 2:
        raise _unusable(f"a tensor of shape {tuple(out.shape)} for {len(x)} rows")
    return out.double() if out.dtype == torch.float64 else out.float()


def number_format(module: Any) -> torch.dtype | None:
    """That of the module's weights; None when it has none."""
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), None)


def _unusable(what: str) -> SparkDDPError:
    return SparkDDPError(
        "SDDP-504",
        f"the model's forward returned {what}.",
        "Let forward(x) return one tensor of shape (rows,), (rows, 1) or (rows, outputs).",
    )


def inputs(
    table: pa.Table, features: Sequence[ColumnFacts], encoders: Encoders, dtype: torch.dtype | None = None
) -> Any:
    """The features, encoded as in the training, as one tensor (rows, width of all): float64 for a model in that format, else float32.

    Raises:
        SparkDDPError: SDDP-504 for a missing feature, a gap, another type or length than in training, or a number that float32
            can't hold.
    """
    names = [feature.name for feature in features]
    _require_once(table, names)
    for feature in features:
        _require_usable(feature, table.column(feature.name), encoders.get(feature.name, {}).get("kind"))
    with np.errstate(over="ignore"):  # what overflows is refused by name
        values = matrix(table, names, np.float64 if dtype == torch.float64 else np.float32, encoders)
    wide = [feature.name for feature in features for _ in range(feature.width)]
    for name, whole in zip(wide, np.isfinite(values).all(axis=0), strict=True):
        if not whole:
            raise SparkDDPError(
                "SDDP-504", f"the feature {name!r} holds a number too large for float32.", "Scale the feature down."
            )
    return torch.from_numpy(values)


def no_rows(
    table: pa.Table, features: Sequence[str], output_shape: Sequence[int], dtype: torch.dtype | None
) -> pa.Array:
    """The empty column that `as_column` would give. Raises SparkDDPError SDDP-504 when the table lacks a feature."""
    if table.num_columns:  # an empty list names none
        _require_once(table, features)
    kind = np.float64 if dtype == torch.float64 else np.float32
    return as_column(torch.from_numpy(np.empty((0, *output_shape), kind)))


def _require_once(table: pa.Table, features: Sequence[str]) -> None:
    for name in features:
        found = table.column_names.count(name)
        if found != 1:
            how = f"hold the feature {name!r} {found} times" if found else f"lack the feature {name!r}"
            raise SparkDDPError(
                "SDDP-504",
                f"the rows {how}; they have: {', '.join(table.column_names)}.",
                f"Give all features once: {', '.join(features)}.",
            )


def _require_usable(feature: ColumnFacts, column: Any, encoding: str | None) -> None:
    name = feature.name
    if encoding == INDEX:
        _require_text(name, column.type)
    elif feature.length is not None:
        _require_lists(name, column, feature.length)
        _require_numbers(name, numbers_of(column), exact=True)
    else:
        _require_numbers(name, column, exact=encoding is None)


def _require_text(name: str, kind: pa.DataType) -> None:
    if not (is_text(kind) or pa.types.is_null(kind)):
        raise SparkDDPError(
            "SDDP-504",
            f"the feature {name!r} is of type {kind}; the model knows it by its texts.",
            "Give the raw texts, as the training's source held them; an unknown one or a null is taken as unknown.",
        )


def _require_lists(name: str, column: Any, length: int) -> None:
    remedy = f"Give each row a list of {length} numbers."
    if not is_list(column.type):
        raise SparkDDPError("SDDP-504", f"the feature {name!r} is of type {column.type}, not of lists.", remedy)
    if column.null_count:
        raise SparkDDPError(
            "SDDP-504", f"the feature {name!r} holds {column.null_count} nulls instead of lists.", remedy
        )
    lengths = pc.min_max(pc.list_value_length(column)).as_py()
    other = [found for found in lengths.values() if found != length]
    if other:
        raise SparkDDPError(
            "SDDP-504", f"the feature {name!r} holds a list of {other[0]} numbers; the model takes {length}.", remedy
        )


def _require_numbers(name: str, column: Any, *, exact: bool) -> None:
    """Complete numbers, and, unless they are standardised, integers that float32 holds exactly."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise SparkDDPError("SDDP-504", f"the feature {name!r} is of type {kind}.", "Give numbers or booleans.")
    gaps = column.null_count
    if pa.types.is_floating(kind):
        gaps += len(column) - column.null_count - (pc.sum(pc.is_finite(column)).as_py() or 0)
    if gaps:
        raise SparkDDPError(
            "SDDP-504", f"the feature {name!r} holds {gaps} nulls, NaN or infinities.", "Fill or drop those rows."
        )
    if exact and pa.types.is_integer(kind) and len(column):
        extremes = pc.min_max(column).as_py()
        if max(abs(extremes["min"]), abs(extremes["max"])) > FLOAT32_EXACT:
            raise SparkDDPError(
                "SDDP-504",
                f"the feature {name!r} holds an integer beyond {FLOAT32_EXACT}.",
                "float32 can't hold it exactly.",
            )


def as_table(rows: Any) -> tuple[pa.Table, str]:
    """The rows as an Arrow table, and what they were: "arrow" or "pandas". A dict of columns and a list of dicts are taken too.

    Raises:
        SparkDDPError: SDDP-504 when they are something else, or a column mixes types, lengths or names.
    """
    try:
        return _as_table(rows)
    except (pa.ArrowException, ValueError, TypeError, AttributeError) as error:
        raise SparkDDPError(
            "SDDP-504", f"the rows make no table: {error}", "Give each feature once, as one column of one type."
        ) from error


def _as_table(rows: Any) -> tuple[pa.Table, str]:
    if isinstance(rows, pa.Table):
        return rows, "arrow"
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows]), "arrow"
    if isinstance(rows, dict):
        return pa.table({name: _column(values) for name, values in rows.items()}), "arrow"
    if isinstance(rows, list):
        return pa.Table.from_pylist(rows), "arrow"
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(rows, pandas.DataFrame):
        return pa.Table.from_pandas(rows, preserve_index=False), "pandas"
    raise SparkDDPError(
        "SDDP-504",
        f"rows are a {type(rows).__name__}.",
        "Give a pyarrow table or record batch, a pandas DataFrame, a dict of columns or a list of dicts.",
    )


def _column(values: Any) -> Any:
    """A numpy array (rows, length) as lists; anything else is for Arrow to understand."""
    return _lists(values) if isinstance(values, np.ndarray) and values.ndim == 2 else values


def _lists(values: Any) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def as_column(predictions: Any) -> pa.Array:
    """(rows,) as numbers, (rows, outputs) as a fixed-size list."""
    values = np.ascontiguousarray(predictions.numpy())
    return pa.array(values) if values.ndim == 1 else _lists(values)

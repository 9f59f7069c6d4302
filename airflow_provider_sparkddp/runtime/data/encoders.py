"""What a reader makes of a column's raw values: fitted in pieces on training rows, applied alike in training and prediction.

A fit is equal bit for bit however the rows are cut into ranks, files and row groups, and in whatever order they come: sums are
exact, and rounding happens once, at the end. Raw values stay in the Parquet files; encoding happens when they are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import NUMERIC

INDEX = "index"
STANDARDIZE = "standardize"
# A vocabulary travels in the manifest and in each model.json.
MAX_VALUES = 100_000
MAX_BYTES = 16 * 2**20
# Beyond it a square is no longer a double.
LARGEST = 1e150

# Rows that are summed at once: they stay in the processor's cache, and a sum of 2^14 numbers of 38 bits is exact in a double.
BLOCK_BITS = 14
# A product of two smaller numbers has bits below the smallest double; they are multiplied by this before they are squared.
SMALL = 2.0**-480
ENLARGE = 600


def require_encodable(name: str, kind: str, type_name: str) -> None:
    """Whether a column of this type (Spark's short name) can be encoded so; known before anything is written.

    Raises:
        SparkDDPError: SDDP-213.
    """
    if kind == INDEX and type_name != "string":
        raise _refused(
            name, kind, f"is of type {type_name}; index is for strings", "leave it out, or cast it to string"
        )
    if kind == STANDARDIZE and (type_name not in NUMERIC or type_name == "boolean"):
        remedy = "use 'index'" if type_name == "string" else "leave it out, or make it a number in the source"
        raise _refused(name, kind, f"is of type {type_name}; standardize is for numbers", remedy)


def fit_piece(kind: str, column: pa.ChunkedArray) -> dict[str, Any]:
    """What a piece of a column tells of it, as plain JSON. Nulls are left out; so are NaN and infinities.

    What is beyond a bound is noted in the fit, which stays small, and refused by `require_fit`, which knows the column's name.

    Raises:
        SparkDDPError: SDDP-213 when the values are of another type than `require_encodable` allows.
    """
    right = is_text(column.type) if kind == INDEX else _is_number(column.type)
    if not right:
        raise SparkDDPError("SDDP-213", f"{column.type} cannot be fitted by {kind!r}.", "Correct encode.")
    return _fit_texts(column) if kind == INDEX else _fit_numbers(column)


def merge_fits(kind: str, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The fit of all pieces together, whatever their order. Of no pieces: that of no rows."""
    if kind == INDEX:
        return _merge_texts(parts)
    return {
        "rows": sum(part["rows"] for part in parts),
        "sum": str(sum((Fraction(part["sum"]) for part in parts), Fraction())),
        "squares": str(sum((Fraction(part["squares"]) for part in parts), Fraction())),
        "largest": max((part["largest"] for part in parts), default=0.0),
    }


def require_fit(name: str, kind: str, fit: Mapping[str, Any]) -> None:
    """Refuses what no further piece can mend: call it after each piece to end early. Raises SparkDDPError SDDP-213."""
    if kind == INDEX and fit["values"] is None:
        remedy = "group or drop such values in the source, or leave the column out"
        raise _refused(name, kind, fit["why"], remedy)
    if kind == STANDARDIZE and fit["largest"] > LARGEST:
        found = f"holds a value of magnitude {fit['largest']:g}; its square is beyond a double (limit {LARGEST:g})"
        raise _refused(name, kind, found, "take its logarithm or scale it in the source")


def encoder(name: str, kind: str, fit: Mapping[str, Any]) -> dict[str, Any]:
    """What stands in the manifest's `encoders` for the column.

    - index: `{"kind", "values"}`, sorted; a value becomes 1 + its place, an unknown value and a null become 0.
    - standardize: `{"kind", "mean", "std", "rows"}` over the finite values; std is that of the population, and 1.0 for a constant
      column, which so becomes 0.

    Raises:
        SparkDDPError: SDDP-213, naming the column, for a fit beyond its bounds or of no value at all.
    """
    require_fit(name, kind, fit)
    rows = len(fit["values"]) if kind == INDEX else fit["rows"]
    if not rows:
        what = "value" if kind == INDEX else "finite number"
        raise _refused(name, kind, f"holds no {what} in any training row", "leave it out, or fill it in the source")
    if kind == INDEX:
        return {"kind": INDEX, "values": list(fit["values"])}
    mean = Fraction(fit["sum"]) / rows
    std = _sqrt(Fraction(fit["squares"]) / rows - mean**2)
    return {"kind": STANDARDIZE, "mean": float(mean), "std": std or 1.0, "rows": rows}


def encoded(column: pa.ChunkedArray, encoder: Mapping[str, Any] | None, dtype: Any) -> Any:
    """The column as a model's input: shape (rows,), or (rows, length) for an array.

    Args:
        encoder: what stands in the manifest for the column; None casts the numbers as they are.
        dtype: of the result; a standardised value is computed in float64 and rounded to it once.

    Raises:
        ValueError: for an array column, when a row or a number in it is null, or the rows differ in length.
    """
    if encoder is not None and encoder["kind"] == INDEX:
        # One type whatever the reader made of text: also of a column without any value, or of a pandas category.
        places = pc.index_in(column.cast(pa.large_string()), pa.array(encoder["values"], pa.large_string()))
        return (pc.fill_null(places, -1).to_numpy() + 1).astype(dtype)
    if is_list(column.type):
        return _rows_of_lists(column, dtype)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if encoder is None:
        return column.to_numpy().astype(dtype, copy=False)
    values = column.to_numpy().astype(np.float64, copy=False)
    return ((values - encoder["mean"]) / encoder["std"]).astype(dtype, copy=False)


def width(column: pa.ChunkedArray) -> int:
    """How many numbers a row has in the column. Raises ValueError as `encoded` does."""
    if not is_list(column.type):
        return 1
    if pa.types.is_fixed_size_list(column.type):
        return int(column.type.list_size)
    lengths = pc.min_max(pc.list_value_length(column)).as_py()
    if lengths["min"] != lengths["max"]:
        raise ValueError(f"its rows hold from {lengths['min']} to {lengths['max']} numbers")
    return lengths["min"] or 0


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _rows_of_lists(column: pa.ChunkedArray, dtype: Any) -> Any:
    if column.null_count:
        raise ValueError(f"it holds {column.null_count} null rows")
    numbers = numbers_of(column)
    if numbers.null_count:
        raise ValueError(f"{numbers.null_count} of the numbers in its rows are null")
    return encoded(numbers, None, dtype).reshape(len(column), width(column))


def numbers_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """All numbers of an array column, row after row. A null row has none."""
    # Not `values`, which ignores the offset of a slice.
    return pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)


def _refused(name: str, kind: str, found: str, remedy: str) -> SparkDDPError:
    return SparkDDPError(
        "SDDP-213", f"encode[{name!r}]={kind!r}: the column {found}.", f"{remedy[0].upper()}{remedy[1:]}."
    )


def is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _fit_texts(column: pa.ChunkedArray) -> dict[str, Any]:
    try:
        return _vocabulary(_different(block) for block in _blocks(column, 2**17))
    except UnicodeDecodeError as error:
        return {"values": None, "why": f"holds text that is not UTF-8: {bytes(error.object[:40])!r}"}


def _different(block: pa.Array) -> list[str]:
    if not pa.types.is_dictionary(block.type):  # Arrow finds the different values of a string view wrongly
        block = block.cast(pa.large_string())
    different: list[str] = pc.unique(block).cast(pa.large_string()).drop_null().to_pylist()
    return different


def _merge_texts(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    ended = [dict(part) for part in parts if part["values"] is None]
    return min(ended, key=lambda part: part["why"]) if ended else _vocabulary(part["values"] for part in parts)


def _vocabulary(pieces: Iterable[Sequence[str]]) -> dict[str, Any]:
    seen: set[str] = set()
    size = 0
    for piece in pieces:
        fresh = set(piece) - seen
        seen |= fresh
        size += sum(len(value.encode()) for value in fresh)
        if len(seen) > MAX_VALUES:
            return {"values": None, "why": f"has more than {MAX_VALUES:,} different values"}
        if size > MAX_BYTES:
            return {"values": None, "why": f"has more than {MAX_BYTES >> 20} MiB of different values"}
    return {"values": sorted(seen)}


def _blocks(column: pa.ChunkedArray, rows: int) -> Iterator[pa.Array]:
    for chunk in column.chunks:
        for start in range(0, len(chunk), rows):
            yield chunk.slice(start, rows)


def _fit_numbers(column: pa.ChunkedArray) -> dict[str, Any]:
    rows, largest, total, squares = 0, 0.0, Fraction(), Fraction()
    for block in _blocks(column, 2**BLOCK_BITS):
        x = block.drop_null().to_numpy(zero_copy_only=False).astype(np.float64)
        x = x[np.isfinite(x)]
        rows += len(x)
        largest = max(largest, float(np.abs(x).max(initial=0.0)))
        if largest <= LARGEST:
            total += _exact_sum(x)
            squares += _exact_sum_of_squares(x)
    if largest > LARGEST:
        total = squares = Fraction()  # it will be refused, and the same for any cut into pieces
    return {"rows": rows, "sum": str(total), "squares": str(squares), "largest": largest}


def _exact_sum(x: Any) -> Fraction:
    """The sum of up to 2^BLOCK_BITS finite doubles, without any rounding.

    Each pass takes the leading bits of all numbers, as multiples of one power of two so few that their sum is exact in a double
    (Rump, Ogita, Oishi: Accurate floating-point summation, 2008), and leaves the rest to the next.
    """
    total, rest = Fraction(), x
    while largest := max(rest.max(initial=0.0), -rest.min(initial=0.0)):
        anchor = math.ldexp(1.0, math.frexp(largest)[1] + BLOCK_BITS + 1)
        leading = (rest + anchor) - anchor
        total += Fraction(float(leading.sum()))
        rest = rest - leading
    return total


def _exact_sum_of_squares(x: Any) -> Fraction:
    small = np.abs(x) < SMALL
    if not small.any():
        return _exact_sum_of_products(x)
    enlarged = _exact_sum_of_products(x[small] * 2.0**ENLARGE)
    return _exact_sum_of_products(x[~small]) + enlarged / 4**ENLARGE


def _exact_sum_of_products(x: Any) -> Fraction:
    """Of x with itself. Each square is a double and its rounding error, another double (Dekker's product, Veltkamp's split)."""
    scaled = x * 134217729.0  # 2^27 + 1: halves of 26 bits
    high = scaled - (scaled - x)
    low = x - high
    product = x * x
    error = low * low - ((product - high * high) - 2.0 * high * low)
    return _exact_sum(product) + _exact_sum(error)


def _sqrt(value: Fraction) -> float:
    """The double nearest to the root."""
    numerator, denominator = value.numerator, value.denominator
    # A root of 55 bits or more, whose last bit says whether anything was left over, rounds as the true one does.
    shift = (numerator.bit_length() - denominator.bit_length() - 111) // 2
    scaled, unit = (numerator, denominator << 2 * shift) if shift > 0 else (numerator << -2 * shift, denominator)
    root = math.isqrt(scaled // unit)
    root |= root * root * unit != scaled
    return float(Fraction(root) * Fraction(2) ** shift)

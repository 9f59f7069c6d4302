"""The manifest: what a partition job wrote, and which rank reads what. It is committed last, so it exists whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from airflow_provider_sparkddp.spec import paths, wire
from airflow_provider_sparkddp.spec.errors import SparkDDPError, nearest

TRAIN = "train"
VALIDATION = "validation"
TEST = "test"
SPLITS = (TRAIN, VALIDATION, TEST)

NUMERIC = ("byte", "short", "int", "long", "float", "double", "boolean")
INTEGERS = ("byte", "short", "int", "long")
# Above 2^24 float32 skips integers: 16,777,217 becomes 16,777,216.
FLOAT32_EXACT = 2**24
FLOAT32_MAX = 3.4028234663852886e38


@dataclass(frozen=True)
class Column:
    """A column over all files.

    Attributes:
        type: Spark's short name: one of `NUMERIC`, or string, date, timestamp; array for numbers of one length.
        nulls, nans, infinities: number of rows; NaN is not null. Of an array, rows that hold such a number.
        minimum, maximum: of the finite numbers; of a date or timestamp as ISO text (UTC); otherwise None.
        mean, std: of the finite numbers of training rows; std is that of the population. None where there are none.
        categories: the different values of a string column in training rows, sorted; None where there are too many.
        element, length: of an array: the numbers' type and how many there are in each row.
    """

    name: str
    type: str
    nulls: int = 0
    nans: int = 0
    infinities: int = 0
    minimum: float | int | str | None = None
    maximum: float | int | str | None = None
    mean: float | None = None
    std: float | None = None
    categories: tuple[str, ...] | None = None
    element: str | None = None
    length: int | None = None

    @property
    def number_type(self) -> str:
        """The type of its numbers: of an array's elements, otherwise its own."""
        return self.element or self.type

    @property
    def width(self) -> int:
        """How many numbers a row has in it."""
        return self.length or 1


@dataclass(frozen=True)
class PartFile:
    """One Parquet file. `name` is relative to the manifest's folder; `row_groups` holds the rows of each; bytes on storage.

    `bin`: with `group_by`, the place among the bins into which groups were packed; files of one bin belong to one rank.
    """

    name: str
    split: str
    rows: int
    bytes: int
    sha256: str
    row_groups: tuple[int, ...]
    bin: int | None = None


@dataclass(frozen=True)
class Piece:
    """What a rank reads of one row group: rows `start` (included) to `stop` (excluded); mostly all of it."""

    file: int
    row_group: int
    start: int
    stop: int

    @property
    def rows(self) -> int:
        return self.stop - self.start


Share = tuple[Piece, ...]


def rows_of(shares: Sequence[Share]) -> list[int]:
    """Rows of each share."""
    return [sum(piece.rows for piece in share) for share in shares]


@dataclass(frozen=True)
class Manifest:
    """Everything that a training needs to know of its data.

    Attributes:
        shares: split -> for each rank of `num_nodes * devices`, the pieces that it reads. Together: every row once.
        source: what the rows came from, for a person.
        group_by, order_by: the columns whose groups lie whole in one file, and those that sort a group's rows.
        encoders: column -> what a reader makes of its values, as `runtime/data/encoders.py` fitted it on training rows.
    """

    num_nodes: int
    devices: int
    seed: int
    columns: tuple[Column, ...]
    files: tuple[PartFile, ...]
    shares: Mapping[str, tuple[Share, ...]]
    source: str
    group_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    encoders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def world_size(self) -> int:
        return self.num_nodes * self.devices

    def rows(self, split: str) -> int:
        return sum(f.rows for f in self.files if f.split == split)

    def column(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name == name), None)

    def rank_rows(self, split: str) -> list[int]:
        """Rows of each rank of the split, for the manifest's own world size."""
        return rows_of(self.shares[split])

    def rank_bytes(self, split: str) -> list[int]:
        """Bytes on storage of each rank of the split, for the manifest's own world size."""
        return self.bytes_of(self.shares[split])

    def bytes_of(self, shares: Sequence[Share]) -> list[int]:
        """Bytes on storage of each share: a file's bytes in proportion to the rows that are read of it."""
        size = [f.bytes / max(1, f.rows) for f in self.files]
        return [round(sum(p.rows * size[p.file] for p in share)) for share in shares]

    def to_text(self) -> str:
        shares = {
            split: [[[p.file, p.row_group, p.start, p.stop] for p in share] for share in shares]
            for split, shares in self.shares.items()
        }
        return wire.pack("manifest", {**asdict(replace(self, shares={})), "shares": shares})

    @classmethod
    def from_text(cls, text: str, where: str) -> Manifest:
        """Raises SparkDDPError SDDP-208 when the text is not a whole, unchanged manifest."""
        body = wire.unpack("manifest", text, where, code="SDDP-208")
        return cls(
            num_nodes=body["num_nodes"],
            devices=body["devices"],
            seed=body["seed"],
            columns=tuple(_column(c) for c in body["columns"]),
            files=tuple(PartFile(**{**f, "row_groups": tuple(f["row_groups"])}) for f in body["files"]),
            shares={
                split: tuple(tuple(Piece(*p) for p in share) for share in shares)
                for split, shares in body["shares"].items()
            },
            source=body["source"],
            group_by=tuple(body.get("group_by", ())),
            order_by=tuple(body.get("order_by", ())),
            encoders=body.get("encoders", {}),
        )


def _column(facts: Mapping[str, Any]) -> Column:
    categories = facts.get("categories")
    return Column(**{**facts, "categories": None if categories is None else tuple(categories)})


def data_uri(manifest_uri: str, file: PartFile) -> str:
    """Where a file of the manifest lies: a manifest and its files can be moved together."""
    return paths.join(paths.parent(manifest_uri), file.name)


def require_columns(manifest: Manifest, names: Mapping[str, str]) -> None:
    """All named columns exist. `names` maps the column to what it was given as (features, target, baseline).

    Raises:
        SparkDDPError: SDDP-204, listing the available columns.
    """
    available = [c.name for c in manifest.columns]
    missing = {name: role for name, role in names.items() if name not in available}
    if missing:
        name, role = next(iter(missing.items()))
        raise SparkDDPError(
            "SDDP-204",
            f"{role} names {name!r}, which the partitions don't hold; they hold: {', '.join(available)}.",
            f"{nearest(name, available)}Correct the name, or partition again with the column.",
        )


def require_trainable(manifest: Manifest, names: Mapping[str, str]) -> None:
    """All named columns are, as they are or encoded, numbers without gaps that float32 can hold.

    Raises:
        SparkDDPError: SDDP-204 to SDDP-207, naming the column and the value or the count.
    """
    require_columns(manifest, names)
    for name, role in names.items():
        column = manifest.column(name)
        assert column is not None  # require_columns has seen to it
        if manifest.encoders.get(name, {}).get("kind") == "index":
            continue  # an unknown value and a null have their own index
        _require_numeric(column, role)
        if name not in manifest.encoders:
            _require_exact(column, role)
            _require_in_range(column, role)
        _require_complete(column, role)


def _require_numeric(column: Column, role: str) -> None:
    if column.number_type not in NUMERIC:
        text = column.type == "string"
        make = f"Partition with encode={{{column.name!r}: 'index'}}, or make" if text else "Make"
        raise SparkDDPError(
            "SDDP-205",
            f"{role} column {column.name!r} is of type {column.type}, which is not a number.",
            f"{make} it a number in the source (an index, a 0/1 flag, seconds), or leave it out.",
        )


def _extremes(column: Column) -> list[float]:
    return [v for v in (column.minimum, column.maximum) if isinstance(v, (int, float))]


def _require_exact(column: Column, role: str) -> None:
    beyond = [v for v in _extremes(column) if abs(v) > FLOAT32_EXACT]
    if column.number_type in INTEGERS and beyond:
        raise SparkDDPError(
            "SDDP-207",
            f"{role} column {column.name!r} holds the integer {beyond[0]}; float32 is exact only up to {FLOAT32_EXACT}.",
            "Leave ids out of the features, subtract an offset, or cast the column to double if rounding is meant.",
        )


def _require_in_range(column: Column, role: str) -> None:
    beyond = [v for v in _extremes(column) if abs(v) > FLOAT32_MAX]
    if beyond:
        raise SparkDDPError(
            "SDDP-207",
            f"{role} column {column.name!r} holds {beyond[0]:g}; float32 ends at {FLOAT32_MAX:g} and makes it infinite.",
            "Scale the column, or take its logarithm.",
        )


def _require_complete(column: Column, role: str) -> None:
    found = {"nulls": column.nulls, "NaN": column.nans, "infinities": column.infinities}
    bad = ", ".join(f"{count} {what}" for what, count in found.items() if count)
    if bad:
        raise SparkDDPError(
            "SDDP-206",
            f"{role} column {column.name!r} holds {bad}; one of them poisons every average.",
            "Fill or drop those rows in the source, then partition again.",
        )

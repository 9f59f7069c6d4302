"""The manifest: what a partition job wrote, and which rank reads what. It is committed last, so it exists whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from airflow_provider_sparkddp.spec import paths, wire
from airflow_provider_sparkddp.spec.errors import SparkDDPError, nearest

TRAIN = "train"
VALIDATION = "validation"
SPLITS = (TRAIN, VALIDATION)

NUMERIC = ("byte", "short", "int", "long", "float", "double", "boolean")
INTEGERS = ("byte", "short", "int", "long")
# Above 2^24 float32 skips integers: 16,777,217 becomes 16,777,216.
FLOAT32_EXACT = 2**24
FLOAT32_MAX = 3.4028234663852886e38


@dataclass(frozen=True)
class Column:
    """A column over all files. `minimum` and `maximum` are set for numbers (finite ones) only.

    Attributes:
        type: Spark's short name: one of `NUMERIC`, or string, date, timestamp.
        nulls, nans, infinities: number of rows; NaN is not null.
    """

    name: str
    type: str
    nulls: int = 0
    nans: int = 0
    infinities: int = 0
    minimum: float | int | None = None
    maximum: float | int | None = None


@dataclass(frozen=True)
class PartFile:
    """One Parquet file. `name` is relative to the manifest's folder; `row_groups` holds the rows of each; bytes on storage."""

    name: str
    split: str
    rows: int
    bytes: int
    sha256: str
    row_groups: tuple[int, ...]


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
    """

    num_nodes: int
    devices: int
    seed: int
    columns: tuple[Column, ...]
    files: tuple[PartFile, ...]
    shares: Mapping[str, tuple[Share, ...]]
    source: str

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
        return wire.pack("manifest", asdict(self))

    @classmethod
    def from_text(cls, text: str, where: str) -> Manifest:
        """Raises SparkDDPError SDDP-208 when the text is not a whole, unchanged manifest."""
        body = wire.unpack("manifest", text, where, code="SDDP-208")
        return cls(
            num_nodes=body["num_nodes"],
            devices=body["devices"],
            seed=body["seed"],
            columns=tuple(Column(**c) for c in body["columns"]),
            files=tuple(PartFile(**{**f, "row_groups": tuple(f["row_groups"])}) for f in body["files"]),
            shares={
                split: tuple(tuple(Piece(**p) for p in share) for share in shares)
                for split, shares in body["shares"].items()
            },
            source=body["source"],
        )


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
    """All named columns are numbers without gaps that float32 can hold.

    Raises:
        SparkDDPError: SDDP-204 to SDDP-207, naming the column and the value or the count.
    """
    require_columns(manifest, names)
    for name, role in names.items():
        column = manifest.column(name)
        assert column is not None  # require_columns has seen to it
        _require_numeric(column, role)
        _require_in_range(column, role)
        _require_complete(column, role)


def _require_numeric(column: Column, role: str) -> None:
    if column.type not in NUMERIC:
        raise SparkDDPError(
            "SDDP-205",
            f"{role} column {column.name!r} is of type {column.type}, which is not a number.",
            "Encode it as a number in the source (an index, a 0/1 flag, seconds), or leave it out.",
        )
    extremes = [v for v in (column.minimum, column.maximum) if v is not None and abs(v) > FLOAT32_EXACT]
    if column.type in INTEGERS and extremes:
        raise SparkDDPError(
            "SDDP-207",
            f"{role} column {column.name!r} holds the integer {extremes[0]}; float32 is exact only up to {FLOAT32_EXACT}.",
            "Leave ids out of the features, subtract an offset, or cast the column to double if rounding is meant.",
        )


def _require_in_range(column: Column, role: str) -> None:
    beyond = [v for v in (column.minimum, column.maximum) if v is not None and abs(v) > FLOAT32_MAX]
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

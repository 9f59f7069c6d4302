"""Who reads what, and in which batches. Pure functions of numbers; every rank computes the same answer.

A share is a list of pieces of row groups. Together the shares hold every row of a split exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import Manifest, PartFile, Piece, Share

# Ranks of a split may differ by so much before row groups are cut: 1 % or 8 rows.
TOLERANCE = 0.01
TOLERANCE_ROWS = 8


def deal(files: Sequence[PartFile], split: str, world_size: int) -> tuple[Share, ...]:
    """The share of each rank.

    One whole file a rank where the files are already balanced; otherwise contiguous, equal ranges of rows over all files in
    their order, cutting a row group in two where a boundary falls into it.

    Raises:
        SparkDDPError: SDDP-202 when there are fewer rows than ranks.
    """
    total = sum(f.rows for f in files if f.split == split)
    if total < world_size:
        raise SparkDDPError(
            "SDDP-202",
            f"the {split} split has {total} rows for {world_size} ranks; every rank needs at least one.",
            "Lower num_nodes or devices, or give more rows" + (" to validation." if split != "train" else "."),
        )
    mine = [index for index, f in enumerate(files) if f.split == split and f.rows]
    rows = [files[index].rows for index in mine]
    if len(mine) == world_size and balanced(rows):
        return tuple(tuple(_pieces(index, files[index])) for index in mine)
    return _equal_ranges([piece for index in mine for piece in _pieces(index, files[index])], total, world_size)


def balanced(rows: Sequence[int]) -> bool:
    """Whether ranks with these rows differ by at most 1 % of their mean or 8 rows."""
    return max(rows) - min(rows) <= max(TOLERANCE_ROWS, TOLERANCE * sum(rows) / len(rows))


def _pieces(index: int, file: PartFile) -> list[Piece]:
    return [Piece(index, group, 0, rows) for group, rows in enumerate(file.row_groups) if rows]


def _equal_ranges(pieces: Sequence[Piece], total: int, world_size: int) -> tuple[Share, ...]:
    shares: list[list[Piece]] = [[] for _ in range(world_size)]
    position, rank = 0, 0
    for piece in pieces:
        start = piece.start
        while start < piece.stop:
            end_of_rank = total * (rank + 1) // world_size
            take = min(piece.stop - start, end_of_rank - position)
            if take:
                shares[rank].append(Piece(piece.file, piece.row_group, start, start + take))
            start, position = start + take, position + take
            if position == end_of_rank:
                rank += 1
    return tuple(tuple(share) for share in shares)


def shares_for(manifest: Manifest, split: str, world_size: int) -> tuple[Share, ...]:
    """The manifest's own shares for its own world size; dealt anew for another. Raises SparkDDPError SDDP-202."""
    if world_size == manifest.world_size:
        return manifest.shares[split]
    return deal(manifest.files, split, world_size)


def steps(rank_rows: Sequence[int], batch_size: int) -> int:
    """Steps of an epoch, equal on all ranks: `ceil(max rows / batch_size)`.

    Fewer where that would leave a rank without a row in some step; its batches then hold a few rows more than batch_size.

    Args:
        rank_rows: rows of each rank, all at least 1.
    """
    return min(-(-max(rank_rows) // batch_size), min(rank_rows))


def batch_bounds(rows: int, num_steps: int) -> list[tuple[int, int]]:
    """Start and stop of each step's batch: near-equal, never empty, together all rows once. Needs rows >= num_steps."""
    return [(rows * step // num_steps, rows * (step + 1) // num_steps) for step in range(num_steps)]

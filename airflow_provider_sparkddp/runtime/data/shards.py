"""Who reads what, and in which batches. Pure functions of numbers; every rank computes the same answer.

A share is a list of pieces of row groups. Together the shares hold every row of a split exactly once.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import TRAIN, Manifest, PartFile, Piece, Share

# Ranks of a split may differ by so much before row groups are cut: 1 % or 8 rows.
TOLERANCE = 0.01
TOLERANCE_ROWS = 8


def deal(files: Sequence[PartFile], split: str, world_size: int, bins_per_rank: int | None = None) -> tuple[Share, ...]:
    """The share of each rank.

    Files of groups go as a whole, each bin to one rank. Otherwise the same number of whole files a rank where that is balanced; or
    contiguous, equal ranges of rows over all files in their order, cutting a row group in two where a boundary falls into it.

    Args:
        bins_per_rank: where groups were packed for this very world size: the bins of a rank follow one another.

    Raises:
        SparkDDPError: SDDP-202 when there are fewer rows than ranks, or a rank would have no group.
    """
    total = sum(f.rows for f in files if f.split == split)
    if total < world_size:
        raise SparkDDPError(
            "SDDP-202",
            f"the {split} split has {total} rows for {world_size} ranks; every rank needs at least one.",
            "Lower num_nodes or devices, or give more rows" + (f" to {split}." if split != "train" else "."),
        )
    mine = [index for index, f in enumerate(files) if f.split == split and f.rows]
    if any(files[index].bin is not None for index in mine):
        rank_of = _packed_bins(files, bins_per_rank) if bins_per_rank else _dealt_bins(files, world_size)
        return _whole_bins(files, mine, split, rank_of, world_size)
    per_rank, left = divmod(len(mine), world_size)
    if not left:
        of_ranks = [mine[rank * per_rank : (rank + 1) * per_rank] for rank in range(world_size)]
        if balanced([sum(files[index].rows for index in indices) for indices in of_ranks]):
            return tuple(tuple(p for index in indices for p in _pieces(index, files[index])) for indices in of_ranks)
    return _equal_ranges([piece for index in mine for piece in _pieces(index, files[index])], total, world_size)


def _packed_bins(files: Sequence[PartFile], bins_per_rank: int) -> dict[int, int]:
    return {f.bin: f.bin // bins_per_rank for f in files if f.bin is not None}


def _dealt_bins(files: Sequence[PartFile], world_size: int) -> dict[int, int]:
    """Bin -> rank, the same for all splits: by training rows, longest first, to the rank that has least."""
    loads = {f.bin: 0 for f in files if f.bin is not None}
    for file in files:
        if file.split == TRAIN and file.bin is not None:
            loads[file.bin] += file.rows
    heap = [(0, rank) for rank in range(world_size)]
    rank_of = {}
    for place in sorted(loads, key=lambda place: (-loads[place], place)):
        load, rank_of[place] = heapq.heappop(heap)
        heapq.heappush(heap, (load + loads[place], rank_of[place]))
    return rank_of


def _whole_bins(
    files: Sequence[PartFile], mine: Sequence[int], split: str, rank_of: Mapping[int, int], world_size: int
) -> tuple[Share, ...]:
    shares: list[list[Piece]] = [[] for _ in range(world_size)]
    for index in mine:
        shares[rank_of[files[index].bin or 0]] += _pieces(index, files[index])
    empty = [rank for rank, share in enumerate(shares) if not share]
    if empty:
        raise SparkDDPError(
            "SDDP-202",
            f"the {split} split has whole groups in {len({files[i].bin for i in mine})} bins for {world_size} ranks; rank "
            f"{empty[0]} would have none.",
            "Lower num_nodes or devices, partition again for this world size (or with a higher files_per_rank), or "
            "hold out more groups.",
        )
    return tuple(tuple(share) for share in shares)


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

"""Whole groups in one rank: counted by Spark, packed longest-first on the driver, and given back to Spark as a small table.

A group is known by the 64-bit hash of its key. Two groups with one hash, should that ever be, share a bin: nothing is torn. With
more than `MOST_GROUPS` groups, buckets of hashes are packed instead, so that the driver holds at most `BUCKETS` numbers a split.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airflow_provider_sparkddp.runtime.partition.rows import quoted
from airflow_provider_sparkddp.runtime.partition.splits import SPLIT
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import SPLITS, TRAIN

# What the driver holds at most: 200,000 hashes and counts are about 10 MB, and so is the table that Spark broadcasts.
MOST_GROUPS = 200_000
BUCKETS = 1 << 16
KEY, BIN = "sparkddp_key", "sparkddp_bin"
NAMELESS, GROUPS = "sparkddp_nameless", "sparkddp_groups"
# Largest rank / mean that is kept silent about.
SKEW = 1.02


@dataclass(frozen=True)
class Packing:
    """Which bin each group (or bucket of groups) goes to.

    Attributes:
        keys: int64, (groups,): hash of the group's key, or number of its bucket.
        bins: int32, (groups,).
        rows: split -> int64, (groups,).
        groups: number of groups a bin, (bins,).
        bucketed: whether the keys are buckets.
    """

    keys: Any
    bins: Any
    rows: dict[str, Any]
    groups: Any
    bucketed: bool

    def bin_rows(self, split: str) -> Any:
        """Rows of the split in each bin."""
        return np.bincount(self.bins, weights=self.rows[split], minlength=len(self.groups)).astype(np.int64)


def pack(rows: Any, bins: int) -> Any:
    """The bin of each group: longest first, each into the bin that is least full so far.

    No bin then holds more than the largest group or 4/3 of the best possible (R. L. Graham, 1969).

    Args:
        rows: (groups,) rows of each group.

    Returns:
        int32, (groups,).
    """
    order = np.argsort(-np.asarray(rows, dtype=np.int64), kind="stable")
    found = np.empty(len(order), dtype=np.int32)
    heap = [(0, place) for place in range(bins)]
    sizes = np.asarray(rows)[order].tolist()
    for group, size in zip(order.tolist(), sizes, strict=True):
        load, place = heap[0]
        found[group] = place
        heapq.heapreplace(heap, (load + size, place))
    return found


def plan(frame: Any, group_by: Sequence[str], world_size: int, files_per_rank: int) -> Packing:
    """Count the rows of each group and pack the groups.

    A group goes by its training rows; one without any by those of its own split, so that each split is balanced.

    Raises:
        SparkDDPError: SDDP-202 for fewer groups than ranks, SDDP-206 for nulls in a group's key.
    """
    keys, rows, groups, bucketed = _counted(frame, group_by)
    _require_enough(int(groups.sum()), group_by, world_size)
    place, bins = np.zeros(len(keys), dtype=np.int32), world_size * files_per_rank
    left = np.ones(len(keys), dtype=bool)
    for split in SPLITS:
        mine = np.flatnonzero(left & (rows[split] > 0))
        place[mine] = _bins(rows[split][mine], world_size, files_per_rank)
        left[mine] = False
    return Packing(keys, place, rows, np.bincount(place, weights=groups, minlength=bins).astype(np.int64), bucketed)


def _bins(rows: Any, world_size: int, files_per_rank: int) -> Any:
    """Packed into ranks first, so that these are balanced, then each rank's groups into its files."""
    ranks = pack(rows, world_size)
    if files_per_rank == 1:
        return ranks
    found = np.empty_like(ranks)
    for rank in range(world_size):
        mine = np.flatnonzero(ranks == rank)
        found[mine] = rank * files_per_rank + pack(rows[mine], files_per_rank)
    return found


def _require_enough(groups: int, group_by: Sequence[str], world_size: int) -> None:
    if 0 < groups < world_size:
        raise SparkDDPError(
            "SDDP-202",
            f"group_by={list(group_by)!r} gives {groups} groups for {world_size} ranks; a group stays whole in one rank.",
            f"Set num_nodes x devices to at most {groups}, group by a finer column, or leave group_by out.",
        )


def key(group_by: Sequence[str]) -> Any:
    """The hash by which a group is known."""
    from pyspark.sql import functions as F

    return F.xxhash64(*(F.col(quoted(name)) for name in group_by))


def _counted(frame: Any, group_by: Sequence[str]) -> tuple[Any, dict[str, Any], Any, bool]:
    """Keys, rows of each split, groups behind each key, and whether keys are buckets.

    One pass over the source, and a second one where there are too many groups. To keep what the first one counted for the second,
    by `persist`, was measured as three times the whole count.
    """
    from pyspark.sql import functions as F

    nameless = F.lit(False)
    for name in group_by:
        nameless |= F.col(quoted(name)).isNull()
    figures = [*SPLITS, NAMELESS, GROUPS]
    counts = (
        frame.select(key(group_by).alias(KEY), SPLIT, nameless.alias(NAMELESS))
        .groupBy(KEY)
        .agg(
            *(F.count_if(F.col(SPLIT) == split).alias(split) for split in SPLITS), F.count_if(NAMELESS).alias(NAMELESS)
        )
        .withColumn(GROUPS, F.lit(1).cast("long"))
    )
    table = counts.limit(MOST_GROUPS + 1).toArrow()
    bucketed = table.num_rows > MOST_GROUPS
    if bucketed:
        buckets = counts.groupBy(F.pmod(KEY, F.lit(BUCKETS)).alias(KEY))
        table = buckets.agg(*(F.sum(name).alias(name) for name in figures)).toArrow()
    # In an order of their own: the packing must not depend on how Spark happened to give them.
    table = table.sort_by(KEY)
    found = {name: table.column(name).to_numpy() for name in (KEY, *figures)}
    _refuse_nulls(int(found[NAMELESS].sum()), group_by)
    return found[KEY], {split: found[split] for split in SPLITS}, found[GROUPS], bucketed


def _refuse_nulls(rows: int, group_by: Sequence[str]) -> None:
    if rows:
        raise SparkDDPError(
            "SDDP-206",
            f"group_by={list(group_by)!r} is null in {rows} rows: they belong to no group.",
            "Drop them by where='… IS NOT NULL', or fill them by columns={…: 'coalesce(…)'}.",
        )


def binned(frame: Any, packing: Packing, group_by: Sequence[str], bins: int) -> tuple[Any, Any]:
    """The rows with some help columns, and the bin of each as an expression over them.

    A group that was not there when groups were counted, for a source may change between its reads, goes by its hash: no row is lost.
    """
    import pyarrow as pa
    from pyspark.sql import functions as F

    table = pa.table({KEY: pa.array(packing.keys, pa.int64()), BIN: pa.array(packing.bins, pa.int32())})
    found = key(group_by)
    known = F.pmod(found, F.lit(BUCKETS)) if packing.bucketed else found
    planned = F.broadcast(frame.sparkSession.createDataFrame(table))
    joined = frame.withColumn(KEY, known.cast("long")).join(planned, KEY, "left")
    return joined, F.coalesce(F.col(BIN), F.pmod(KEY, F.lit(bins)).cast("int"))


def changed_lines(packing: Packing, written: int) -> list[str]:
    """A warning where the source gave another number of rows when it was read again to be written."""
    counted = sum(int(rows.sum()) for rows in packing.rows.values())
    if counted == written:
        return []
    return [
        f"WARNING: the source gave {counted:,} rows when groups were counted, and {written:,} when they were written: it changes, or "
        "is random, between two reads. All rows of the second read are there and groups are whole; ranks may be less balanced."
    ]


def lines(frame: Any, packing: Packing, group_by: Sequence[str], world_size: int, torn: Sequence[str]) -> list[str]:
    """For a person: how many groups there are and a rank has, and warnings.

    Args:
        torn: splits that go by rows, not by groups: a group that is in one of them and has none for training is worth a word.
    """
    ranks = packing.groups.reshape(world_size, -1).sum(axis=1)
    how = f", packed as {len(packing.keys):,} buckets of hashes" if packing.bucketed else ""
    counts = f"{ranks.min():,} to {ranks.max():,} a rank"
    told = f"{int(packing.groups.sum()):,} groups by {', '.join(group_by)}, {counts}{how}"
    held_out = sum((packing.rows[split] for split in torn), np.zeros(len(packing.keys), dtype=np.int64))
    untrained = int(((packing.rows[TRAIN] == 0) & (held_out > 0)).sum())
    warnings = (
        [f"WARNING: {untrained:,} groups have no row for training: all of theirs are held out."] if untrained else []
    )
    return [
        told,
        *(warnings if not packing.bucketed else []),
        *skew_lines(frame, packing, group_by, world_size),
    ]


def skew_lines(frame: Any, packing: Packing, group_by: Sequence[str], world_size: int) -> list[str]:
    """A warning that names the largest group, where it or the packing leaves a rank with more than 1.02 x the mean."""
    loads = packing.bin_rows(TRAIN)
    ranks = loads.reshape(world_size, -1).sum(axis=1)
    mean = loads.sum() / world_size
    if ranks.max() <= SKEW * mean:
        return []
    place = int(np.argmax(packing.rows[TRAIN]))
    return [
        f"WARNING: the largest rank has {ranks.max() / mean:.2f} x the mean rows; the largest group, "
        f"{_named(frame, packing, group_by, place)}, has {packing.rows[TRAIN][place]:,} rows ({mean:,.0f} a rank are the mean). "
        "Fewer ranks, or more groups, would balance better."
    ]


def _named(frame: Any, packing: Packing, group_by: Sequence[str], place: int) -> str:
    """The group's key as a person knows it."""
    from pyspark.sql import functions as F

    if packing.bucketed:
        return "in one of the buckets of groups"
    row = (
        frame.where(key(group_by) == F.lit(int(packing.keys[place])).cast("long"))
        .select(*map(quoted, group_by))
        .first()
    )
    return ", ".join(f"{name}={row[name]!r}" for name in group_by) if row else "unnamed"

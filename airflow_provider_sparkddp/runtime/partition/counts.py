"""Whether the rows that were written are those that were asked for: some in each split, and none without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_sparkddp.runtime.sources.reading import describe
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import SPLITS, TEST, TRAIN, VALIDATION, Column, PartFile

# With more files than that, rows are counted first: to write that many takes longer than to read the source once more.
MANY_FILES = 1000


def require_enough(frame: Any, settings: Mapping[str, Any], files: int) -> None:
    """Raises SparkDDPError SDDP-202 for fewer rows than ranks, before very many files are written for nothing."""
    ranks = settings["num_nodes"] * settings["devices"]
    if files <= MANY_FILES:
        return
    rows = frame.limit(ranks).count()
    if 0 < rows < ranks:
        raise SparkDDPError(
            "SDDP-202",
            f"{describe(settings['source'])} gave {rows:,} rows for {ranks:,} ranks.",
            "Set num_nodes x devices to the number of ranks that train.",
        )


def null_lines(columns: Sequence[Column], rows: int) -> list[str]:
    """A warning for each column without any value, as one that is misspelt in a schema has."""
    return [
        f"WARNING: the column {column.name!r} is null in all rows: is its name in the source, or in source['schema'], another?"
        for column in columns
        if rows and column.nulls == rows
    ]


def require_rows(files: Sequence[PartFile], settings: Mapping[str, Any]) -> None:
    """Each split that was asked for has rows, and every row has a split.

    Raises:
        SparkDDPError: SDDP-201 without rows in all, for training or in a split; SDDP-206 for rows that a null left undecided.
    """
    count = {split: sum(f.rows for f in files if f.split == split) for split in {f.split for f in files}}
    undecided = sum(rows for split, rows in count.items() if split not in SPLITS)
    if undecided:
        raise SparkDDPError(
            "SDDP-206",
            f"{_asked(settings)} is decided by a column that is null in {undecided} rows.",
            "Fill or drop those rows in the source.",
        )
    if not sum(count.values()):
        raise SparkDDPError(
            "SDDP-201",
            f"{describe(settings['source'])} gave no rows.",
            "Check the path, the table or the filter; nothing was published.",
        )
    if not count.get(TRAIN):
        held = " and ".join(f"{count[split]} for {split}" for split in (VALIDATION, TEST) if count.get(split))
        raise SparkDDPError(
            "SDDP-201",
            f"all rows are held out ({held}), none is for training.",
            f"Change {_asked(settings)}.",
        )
    for split in (VALIDATION, TEST):
        if settings[split] is not None and not count.get(split):
            raise SparkDDPError(
                "SDDP-201",
                f"{split}={settings[split]!r} holds out no row of {sum(count.values())}.",
                f"{_why_none(settings, split)}Change {split}, or set {split}=None to go without.",
            )


def _asked(settings: Mapping[str, Any]) -> str:
    return " and ".join(f"{split}={settings[split]!r}" for split in (VALIDATION, TEST) if settings[split] is not None)


def _why_none(settings: Mapping[str, Any], split: str) -> str:
    if isinstance(settings[split], float):
        what = "groups" if settings["group_by"] else "different rows"
        return f"A fraction goes by a hash, and equal ones lie on one side: are there enough {what}? "
    return "The test is decided first: do both name the same rows? " if split == VALIDATION and settings[TEST] else ""

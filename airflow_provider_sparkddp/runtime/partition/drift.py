"""How the data changed since an earlier manifest: columns, categories and means, and the gates that they must pass. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import NUMERIC, Column, Manifest

# JSON has no infinity. No column shifts so far by itself, and every gate that can be set is below it.
INFINITE = 1e308
# Sums in another order differ by this much at most: no shift, also where the earlier std is as small.
ROUNDING = 1e-9
# Most lines of the log, categories of a column that are named, and columns in JSON: an XCom is small.
MOST_LINES, MOST_NAMED, MOST_COLUMNS = 20, 10, 100


@dataclass(frozen=True)
class Drift:
    """What changed.

    Attributes:
        added, missing: names of columns that only the new data have, and only the earlier.
        retyped: column -> its type then and now.
        new_categories: column -> values that the earlier training rows did not have; None where there are now too many to
            be listed, while the earlier ones were listed.
        mean_shifts: column -> how far its mean moved, in units of the earlier std; columns that did not move are in it with
            0. Infinite where the earlier std is 0, and where one side has no numbers at all.
        earlier: the manifest that is compared with, and what its rows came from.
    """

    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    retyped: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    new_categories: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    mean_shifts: Mapping[str, float] = field(default_factory=dict)
    earlier: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, the largest first and bounded; an infinite shift is ±`INFINITE`."""
        return {
            "added": list(self.added[:MOST_COLUMNS]),
            "missing": list(self.missing[:MOST_COLUMNS]),
            "retyped": {name: list(types) for name, types in list(self.retyped.items())[:MOST_COLUMNS]},
            "new_categories": {
                name: {"count": None if new is None else len(new), "first": list((new or ())[:MOST_NAMED])}
                for name, new in self._by_categories()[:MOST_COLUMNS]
            },
            "mean_shifts": {name: _finite(shift) for name, shift in self._by_shift()[:MOST_COLUMNS]},
        }

    def lines(self) -> list[str]:
        """A small table for the log: what differs in kind first, then the largest figures; one line where nothing changed."""
        rows = [
            *((name, "added", "") for name in self.added),
            *((name, "missing", "") for name in self.missing),
            *((name, "retyped", f"{was} -> {now}") for name, (was, now) in self.retyped.items()),
            *((name, "new categories", _categories(new)) for name, new in self._by_categories()),
            *((name, "mean", f"{shift:+.3g} std") for name, shift in self._by_shift() if shift),
        ]
        title = f"drift against {self.earlier}:"
        if not rows:
            return [f"{title} none"]
        left = [f"… and {len(rows) - MOST_LINES:,} more"] if len(rows) > MOST_LINES else []
        return [title, *_table(rows[:MOST_LINES]), *left]

    def _by_categories(self) -> list[tuple[str, tuple[str, ...] | None]]:
        return sorted(
            self.new_categories.items(), key=lambda item: (-math.inf if item[1] is None else -len(item[1]), item[0])
        )

    def _by_shift(self) -> list[tuple[str, float]]:
        return sorted(self.mean_shifts.items(), key=lambda item: (-abs(item[1]), item[0]))


def compare(earlier: Manifest, uri: str, now: Sequence[Column]) -> Drift:
    """The columns of now against those of the earlier manifest, which lies at the URI, by name."""
    was, new = {column.name: column for column in earlier.columns}, {column.name: column for column in now}
    both = [(was[name], column) for name, column in new.items() if name in was]
    types = {column.name: (_type(old), _type(column)) for old, column in both}
    alike = [(old, column) for old, column in both if types[column.name][0] == types[column.name][1]]
    shifts = {column.name: _shift(old, column) for old, column in both if _is_number(old) and _is_number(column)}
    return Drift(
        added=tuple(name for name in new if name not in was),
        missing=tuple(name for name in was if name not in new),
        retyped={name: kinds for name, kinds in types.items() if kinds[0] != kinds[1]},
        new_categories={column.name: new for old, column in alike for new in _new_categories(old, column)},
        mean_shifts={name: shift for name, shift in shifts.items() if shift is not None},
        earlier=f"{uri} ({earlier.source})",
    )


def require(drift: Drift, gates: Mapping[str, Any]) -> None:
    """All gates pass.

    Args:
        gates: `schema` and `new_categories`: whether such a change is refused; `max_mean_shift`: in units of the earlier std.

    Raises:
        SparkDDPError: SDDP-211, naming each gate that failed with its figure.
    """
    failed = [*_schema(drift, gates), *_categories_gate(drift, gates), *_shifts(drift, gates)]
    if failed:
        raise SparkDDPError(
            "SDDP-211",
            f"compared with {drift.earlier}: {'; '.join(failed)}.",
            "Mend the source, loosen the gate in drift, or compare with a newer manifest by compare_with.",
            {"drift": drift.to_json()},
        )


def _schema(drift: Drift, gates: Mapping[str, Any]) -> list[str]:
    if not gates.get("schema"):
        return []
    retyped = [f"{name} ({was} -> {now})" for name, (was, now) in drift.retyped.items()]
    found = {"added": drift.added, "missing": drift.missing, "retyped": retyped}
    return [f"schema: {len(names):,} columns {what}: {_named(names)}" for what, names in found.items() if names]


def _categories_gate(drift: Drift, gates: Mapping[str, Any]) -> list[str]:
    if not gates.get("new_categories"):
        return []
    told = [f"{name!r} has {_categories(new)}" for name, new in drift._by_categories()]
    return [f"new_categories: {'; '.join(told[:MOST_NAMED])}{_rest(told)}"] if told else []


def _shifts(drift: Drift, gates: Mapping[str, Any]) -> list[str]:
    most = gates.get("max_mean_shift")
    if most is None:
        return []
    beyond = [f"{name!r} {shift:+.3g}" for name, shift in drift._by_shift() if abs(shift) > most]
    return [f"max_mean_shift={most:g}: {', '.join(beyond[:MOST_NAMED])}{_rest(beyond)}"] if beyond else []


def _type(column: Column) -> str:
    return f"array<{column.element}>[{column.length}]" if column.element else column.type


def _is_number(column: Column) -> bool:
    return column.number_type in NUMERIC


def _new_categories(old: Column, new: Column) -> list[tuple[str, ...] | None]:
    """One element, or none where nothing is new or nothing can be told."""
    if old.categories is None:
        return []
    if new.categories is None:
        return [None]
    found = tuple(sorted(set(new.categories) - set(old.categories)))
    return [found] if found else []


def _shift(old: Column, new: Column) -> float | None:
    """None where neither side has numbers, or the earlier one wasn't measured."""
    if old.mean is None and new.mean is None:
        return None
    if old.mean is None or new.mean is None:
        # Nothing is known of numbers where all were null: as far as can be.
        return math.inf
    if math.isclose(old.mean, new.mean, rel_tol=ROUNDING):
        return 0.0
    if old.std is None:
        return None
    moved = new.mean - old.mean
    return moved / old.std if old.std else math.copysign(math.inf, moved)


def _finite(shift: float) -> float:
    return max(-INFINITE, min(INFINITE, shift))


def _categories(new: tuple[str, ...] | None) -> str:
    return "more than can be listed" if new is None else f"{len(new):,}: {_named([repr(value[:40]) for value in new])}"


def _named(names: Sequence[str]) -> str:
    return f"{', '.join(names[:MOST_NAMED])}{_rest(names)}"


def _rest(names: Sequence[str]) -> str:
    return f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]

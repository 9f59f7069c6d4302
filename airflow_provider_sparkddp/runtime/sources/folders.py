"""Hive-style folders, `column=value`: which values lose something by the type that Spark infers for the column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from urllib.parse import unquote

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")
INTEGERS = ("tinyint", "smallint", "int", "bigint")
# Text that a number doesn't give back: zeros before the digits or at the end of a fraction, a plus, an exponent.
CHANGED = re.compile(r"[+]|-?0\d|.*\.\d*0$|-0$|.*[eE]")


def segments(uri: str) -> list[str]:
    """The names on the way to a file, without scheme and host."""
    return [part for part in SCHEME.sub("", uri).split("/") if part]


def values(files: Iterable[str], bases: Sequence[str]) -> dict[str, set[str]]:
    """Column -> the texts that its folders have, below the paths that were asked for.

    Args:
        files: as `DataFrame.inputFiles()` gives them, percent-encoded.
        bases: the source's paths, which may hold patterns.
    """
    known = [segments(base) for base in bases]
    found: dict[str, set[str]] = {}
    for folder in {uri.rsplit("/", 1)[0] for uri in files}:
        parts = segments(unquote(folder))
        for column, value in _pairs(parts[_depth(parts, known) :]):
            found.setdefault(column, set()).add(value)
    return found


def _depth(parts: Sequence[str], bases: Sequence[Sequence[str]]) -> int:
    """How many names belong to the path that was asked for, not to the table below it."""
    fits = [len(base) for base in bases if len(base) <= len(parts) and all(map(fnmatchcase, parts[: len(base)], base))]
    return max(fits, default=len(parts))


def _pairs(parts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for part in parts:
        column, equals, value = part.partition("=")
        if equals and column and value != NO_VALUE:
            # Spark escapes in the names of folders what a path can't hold.
            yield unquote(column), unquote(value)


def lossy(found: Mapping[str, set[str]], types: Mapping[str, str]) -> dict[str, list[str]]:
    """Column -> the texts that its type changes, sorted; columns that lose nothing are left out.

    Args:
        types: column -> Spark's name of its type. Columns that aren't named in it are no columns of the source.
    """
    named = {name.lower(): kind for name, kind in types.items()}
    changed = {
        column: sorted(text for text in texts if loses(text, named[column.lower()]))
        for column, texts in found.items()
        if column.lower() in named
    }
    return {column: texts for column, texts in changed.items() if texts}


def loses(text: str, kind: str) -> bool:
    """Whether the text can't be had back from the value: 007 as 7, 1.10 as 1.1, 1d as 1.0."""
    if kind not in (*INTEGERS, "float", "double") and not kind.startswith("decimal"):
        return False
    try:
        number = Decimal(text)
    except InvalidOperation:
        return True
    if CHANGED.match(text) or not number.is_finite():
        return True
    return kind in ("float", "double") and Decimal(repr(float(text))) != number

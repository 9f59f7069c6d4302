"""Which names of columns are refused, wherever they come from, and what is said of names that aren't there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_provider_sparkddp.spec.errors import SparkDDPError, nearest

RESERVED = "sparkddp_"


def require_safe(names: Iterable[str]) -> None:
    """Raises SparkDDPError SDDP-204, naming all of them, for names that Spark or this provider would take for something else."""
    unsafe = [name for name in names if _unsafe(name)]
    if unsafe:
        raise SparkDDPError(
            "SDDP-204",
            f"{_named(unsafe)}: a column's name may hold no dot, backtick or outer spaces, nor begin with {RESERVED!r}.",
            "Rename by columns={'new name': '`old name`', …}; letters, digits, '_', inner spaces and any alphabet are fine.",
        )


def _unsafe(name: str) -> bool:
    return name.lower().startswith(RESERVED) or "`" in name or "." in name or name != name.strip() or not name


def require_single(names: Sequence[str], where: str) -> None:
    """Raises SparkDDPError SDDP-204 for a name that stands there twice, also where only the case differs."""
    lowered = [name.lower() for name in names]
    doubled = sorted(dict.fromkeys(name for name in names if lowered.count(name.lower()) > 1))
    if doubled:
        raise SparkDDPError(
            "SDDP-204",
            f"{where} has {_named(doubled)}: the same name twice, for here, as in Spark by default, case tells no columns apart.",
            "Rename or drop one.",
        )


def require_present(names: Sequence[str], available: Sequence[str], where: str, argument: str) -> None:
    """Raises SparkDDPError SDDP-204 for names that aren't among those available: all are told, and what each may have been.

    Args:
        argument: the one that holds the names.
    """
    absent = [name for name in names if name not in available]
    if not absent:
        return
    hints = "".join(nearest(name, available) for name in absent)
    verb = "are" if len(absent) > 1 else "is"
    raise SparkDDPError(
        "SDDP-204",
        f"{_named(absent)} {verb} not in {where}; it has: {', '.join(available)}.",
        f"{hints}Correct it in {argument}.",
    )


def _named(names: Sequence[str]) -> str:
    return f"the column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"

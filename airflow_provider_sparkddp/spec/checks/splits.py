"""How rows are told apart into training, validation and test: one grammar for both arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec.arguments import UNKNOWN, convert, is_empty
from airflow_provider_sparkddp.spec.checks.values import PLAIN, check_json
from airflow_provider_sparkddp.spec.errors import SparkDDPError

KINDS = ("after", "last_per_group", "column")


def check_splits(arguments: dict[str, Any]) -> None:
    """`validation` and `test`, converted; together they leave something to train on."""
    for name in ("validation", "test"):
        if name in arguments:
            arguments[name] = check_split(name, arguments[name])
            check_json(name, arguments[name], PLAIN)
            _require_groups(name, arguments)
    _require_apart(arguments.get("validation"), arguments.get("test"))
    fractions = [arguments[n] for n in ("validation", "test") if isinstance(arguments.get(n), float)]
    if sum(fractions) >= 1:
        raise SparkDDPError(
            "SDDP-101",
            f"validation={fractions[0]!r} and test={fractions[1]!r} together leave nothing to train on.",
            "Lower one of them.",
        )


def check_split(name: str, value: Any) -> Any:
    """A fraction, {"after": {"column", "value"}}, {"last_per_group": rows} or {"column": name}; None for no such rows."""
    if is_empty(value):
        return None
    if isinstance(value, str) and value.strip().startswith("{"):
        value = convert(name, value, "dict")
    if not isinstance(value, Mapping):
        fraction = convert(name, value, "float")
        if not 0 < fraction < 1:
            raise SparkDDPError(
                "SDDP-101", f"{name}={value!r} is not between 0 and 1.", "Use a fraction such as 0.1, or None."
            )
        return fraction
    if len(value) != 1 or next(iter(value)) not in KINDS:
        raise SparkDDPError(
            "SDDP-101",
            f"{name} has the keys {', '.join(map(repr, value)) or 'none'}.",
            "Use a fraction, {'after': {'column': …, 'value': …}}, {'last_per_group': …} or {'column': …}.",
        )
    kind, inner = next(iter(value.items()))
    if inner is UNKNOWN:
        return value
    if kind == "after":
        return {"after": _after(name, inner)}
    if kind == "column":
        return {"column": convert(f"{name}['column']", inner, "str")}
    rows = convert(f"{name}['last_per_group']", inner, "int")
    if rows < 1:
        raise SparkDDPError("SDDP-101", f"{name}['last_per_group']={inner!r} is too small.", "Use at least 1.")
    return {"last_per_group": rows}


def _after(name: str, value: Any) -> dict[str, Any]:
    after = convert(f"{name}['after']", value, "dict")
    if set(after) != {"column", "value"}:
        raise SparkDDPError(
            "SDDP-101",
            f"{name}['after'] has the keys {', '.join(map(repr, after)) or 'none'}.",
            f"Give it 'column' and 'value': rows whose column is greater than the value are for {name}.",
        )
    if after["value"] is None:
        raise SparkDDPError(
            "SDDP-101", f"{name}['after']['value'] is None.", "Give the last value that is still for training."
        )
    return {**after, "column": convert(f"{name}['after']['column']", after["column"], "str")}


def _require_apart(validation: Any, test: Any) -> None:
    """The test is decided first: what names the same rows, or fewer of them, leaves none for validation."""
    if not (isinstance(validation, Mapping) and isinstance(test, Mapping)):
        return
    flags = validation.get("column"), test.get("column")
    (one, border), (other, held) = _border(validation), _border(test)
    comparable = type(border) is type(held) and isinstance(border, (str, int, float))
    if (flags[0] == flags[1] and isinstance(flags[0], str)) or (comparable and one == other and not border < held):
        raise SparkDDPError(
            "SDDP-101",
            f"validation={dict(validation)!r} leaves no row beside test={dict(test)!r}, which is decided first.",
            "Let them name different rows, for example test after a later value than validation.",
        )


def _border(split: Mapping[str, Any]) -> tuple[Any, Any]:
    """Column and value of `after`, as far as they are known."""
    after = split.get("after")
    return (after["column"], after["value"]) if isinstance(after, Mapping) else (None, None)


def deciding_columns(*splits: Any) -> list[str]:
    """The columns by whose value the splits decide, as far as they are known."""
    found = []
    for split in splits:
        if isinstance(split, Mapping):
            found += [_border(split)[0], split.get("column")]
    return list(dict.fromkeys(name for name in found if isinstance(name, str)))


def _require_groups(name: str, arguments: Mapping[str, Any]) -> None:
    split = arguments[name]
    if not (isinstance(split, Mapping) and "last_per_group" in split):
        return
    missing = [needed for needed in ("group_by", "order_by") if needed in arguments and not arguments[needed]]
    if missing:
        raise SparkDDPError(
            "SDDP-101",
            f"{name}={dict(split)!r} takes the last rows of each group, and {missing[0]} is not set.",
            "Set group_by (the series' id) and order_by (its time).",
        )

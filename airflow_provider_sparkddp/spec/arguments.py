"""From what a DAG author wrote, or a template rendered, to values of the declared types.

Without native rendering, templated numbers, booleans and lists arrive as strings, and "False" is truthy: each argument is
converted by its declared type, and refused when it doesn't convert.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow_provider_sparkddp.spec.errors import SparkDDPError


class _Unknown:
    """Stands for a value that isn't known while the DAG is parsed: a template or another task's output."""

    def __repr__(self) -> str:
        return "<known when the task runs>"

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = _Unknown()


@dataclass(frozen=True)
class Argument:
    """One argument of an operator: its declared type (a key of `CONVERTERS`), whether it must be set, its bounds, its default.

    A default stands in the operator's signature too, where people look for it; a test holds the two together.
    """

    type: str
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    default: Any = None


def is_empty(value: Any) -> bool:
    """Not set: None, or what an empty field of the trigger form renders to."""
    return value is None or (isinstance(value, str) and value.strip() in ("", "None"))


def check_arguments(declared: Mapping[str, Argument], values: Mapping[str, Any]) -> dict[str, Any]:
    """The known values, converted; defaults for those that are not set. Unknown ones are left out.

    Raises:
        SparkDDPError: SDDP-101 for a missing argument, a wrong type, or a value below its minimum.
    """
    converted: dict[str, Any] = {}
    for name, argument in declared.items():
        value = values.get(name)
        if value is UNKNOWN:
            continue
        if argument.type != "any" and is_empty(value):
            value = argument.default
        if value is None or (argument.required and argument.type == "any" and value in ("", {})):
            if argument.required:
                raise SparkDDPError("SDDP-101", f"{name} is not set.", f"Set {name} ({EXPECTED[argument.type]}).")
            converted[name] = None
            continue
        converted[name] = convert(name, value, argument.type)
        if argument.minimum is not None and converted[name] < argument.minimum:
            raise SparkDDPError("SDDP-101", f"{name}={value!r} is too small.", f"Use at least {argument.minimum:g}.")
        if argument.maximum is not None and converted[name] > argument.maximum:
            raise SparkDDPError("SDDP-101", f"{name}={value!r} is too large.", f"Use at most {argument.maximum:.0f}.")
    return converted


def convert(name: str, value: Any, type_: str) -> Any:
    """The value as the declared type.

    Raises:
        SparkDDPError: SDDP-101 naming the argument, the value and what is expected.
    """
    if value is UNKNOWN:
        return value
    try:
        return CONVERTERS[type_](value)
    except (ValueError, TypeError, SyntaxError, OverflowError, RecursionError, MemoryError):
        raise SparkDDPError(
            "SDDP-101", f"{name}={value!r} is {type(value).__name__}.", f"Set {EXPECTED[type_]}."
        ) from None


def _int(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, float) and not value.is_integer():
        raise ValueError
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError
    return number


def _number(value: Any) -> int | float:
    """Keeps an int an int: Lightning reads limit_train_batches=1 as one batch and 1.0 as all of them."""
    if isinstance(value, (int, float)):
        return _float(value) if isinstance(value, float) else _int(value)
    text = str(value).strip()
    return int(text) if text.lstrip("+-").isdigit() else _float(text)


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise ValueError


def _str(value: Any) -> str:
    # With native rendering a name like "7" arrives as a number; a container is never meant as a name.
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        raise TypeError
    return str(value)


def _literal(value: Any) -> Any:
    """A list or dict that a template rendered to text, as JSON or as Python writes it."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return ast.literal_eval(value)


def _names(value: Any) -> list[str]:
    parsed = _literal(value)
    if isinstance(parsed, (str, Mapping)) or not all(isinstance(name, str) for name in parsed):
        raise TypeError
    return list(parsed)


def _name_or_names(value: Any) -> list[str]:
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return [_str(value)]
    return _names(value)


def _columns(value: Any) -> list[str] | dict[str, str]:
    """Names, or name -> SQL expression."""
    parsed = _literal(value)
    if not isinstance(parsed, Mapping):
        return _names(parsed)
    if not all(isinstance(part, str) and part for pair in parsed.items() for part in pair):
        raise TypeError
    return dict(parsed)


def _dict(value: Any) -> dict[str, Any]:
    parsed = _literal(value)
    if not isinstance(parsed, Mapping):
        raise TypeError
    return dict(parsed)


def _name_or_dict(value: Any) -> str | dict[str, Any]:
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        return _str(value)
    return _dict(value)


def _any(value: Any) -> Any:
    return value


def _switch(value: Any) -> Any:
    """True or False, a count, or something else than these; None of an empty field."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if is_empty(text):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if text.isdigit() else value


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "int": _int,
    "float": _float,
    "number": _number,
    "bool": _bool,
    "str": _str,
    "names": _names,
    "name_or_names": _name_or_names,
    "columns": _columns,
    "dict": _dict,
    "name_or_dict": _name_or_dict,
    "any": _any,
    "switch": _switch,
}
EXPECTED: dict[str, str] = {
    "int": "a whole number",
    "float": "a finite number",
    "number": "a finite number",
    "bool": "True or False",
    "str": "a text that is not empty",
    "names": "a list of names",
    "name_or_names": "a name or a list of names",
    "columns": "a list of names, or a dict of name -> SQL expression",
    "dict": "a dict",
    "name_or_dict": "a name or a dict",
    "any": "a value",
    "switch": "True, False or a value",
}

"""Checks that several operators need: import paths, allowed values, plain JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.arguments import UNKNOWN, convert
from airflow_provider_sparkddp.spec.errors import SparkDDPError, nearest

IMPORT_PATH = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")
IMPORT_KEYS = ("$import", "kwargs")
PLAIN = "Use texts, numbers, booleans, lists and dicts; write a date as text, such as '2013-11-01'."
OBJECTS = "Write objects as {'$import': 'pkg.mod:Class', 'kwargs': {…}}."


def import_path(name: str, value: str) -> str:
    """Raises SparkDDPError SDDP-101 unless the value is written `package.module:Name`."""
    if not IMPORT_PATH.match(value):
        raise SparkDDPError(
            "SDDP-101", f"{name}={value!r} is not an import path.", "Write 'package.module:Name', with one colon."
        )
    return value


def one_of(name: str, value: Any, valid: tuple[str, ...], code: str = "SDDP-101") -> None:
    if value is not UNKNOWN and value not in valid:
        raise SparkDDPError(code, f"{name} is {value!r}.", f"{nearest(str(value), valid)}Allowed: {', '.join(valid)}.")


def run_dir(arguments: dict[str, Any]) -> None:
    if arguments.get("run_dir"):
        arguments["run_dir"] = paths.absolute_uri(arguments["run_dir"], "run_dir")


def check_json(name: str, value: Any, remedy: str) -> None:
    """Plain JSON, with UNKNOWN allowed while the DAG is parsed."""
    try:
        json.dumps(value, allow_nan=False, default=lambda v: None if v is UNKNOWN else _not_json(v))
    except (TypeError, ValueError) as error:
        raise SparkDDPError(
            "SDDP-101",
            f"{name} is not plain JSON: {error}.",
            remedy,
        ) from None
    _check_imports(name, value)


def _not_json(value: Any) -> Any:
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def _check_imports(name: str, value: Any) -> None:
    if isinstance(value, Mapping):
        if any(str(key).startswith("$") for key in value):
            _check_import(name, value)
        for key, inner in value.items():
            _check_imports(f"{name}[{key!r}]", inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check_imports(f"{name}[{index}]", inner)


def _check_import(name: str, value: Mapping[str, Any]) -> None:
    """{"$import": path} is the thing itself, with "kwargs" (also empty) what it returns; nothing else belongs there."""
    for key in value:
        one_of(f"a key of {name}", key, IMPORT_KEYS)
    if value.get("$import") is not UNKNOWN:
        import_path(f"{name}['$import']", convert(f"{name}['$import']", value.get("$import"), "str"))
    if "kwargs" in value:
        convert(f"{name}['kwargs']", value["kwargs"], "dict")

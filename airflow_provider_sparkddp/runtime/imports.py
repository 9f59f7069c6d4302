"""Importing by path what the DAG author named: `pkg.mod:Name`, and objects written as {"$import": path, "kwargs": {…}}."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import platform
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.references import import_paths


def import_object(path: str, what: str) -> Any:
    """The object of an import path.

    Raises:
        SparkDDPError: SDDP-401 when the module or the name in it is missing, or the module fails while it is imported.
    """
    module_name, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise SparkDDPError(
            "SDDP-401",
            f"{what}={path!r} cannot be imported ({type(error).__name__}: {error}).",
            "Give the file or folder that holds it in py_files (or put it on sys.path), or install its package where this runs.",
        ) from error
    return found


def preload(path: str) -> None:
    """Import the module of an import path ahead of its use. What is wrong with it is told by whoever uses it."""
    with suppress(Exception):
        importlib.import_module(path.partition(":")[0])


def require_importable(value: Any, what: str) -> None:
    """Raises SparkDDPError SDDP-401 for the first {"$import": path} in the value that can't be imported."""
    for path in import_paths(value):
        import_object(path, what)


def require_package(module: str, wanted_by: str, remedy: str) -> None:
    """Raises SparkDDPError SDDP-311 when an optional package isn't installed where this runs."""
    if importlib.util.find_spec(module) is None:
        raise SparkDDPError(
            "SDDP-311", f"{wanted_by} needs the package {module!r}, and {platform.node()} has none.", remedy
        )


def parameters(factory: Any) -> frozenset[str]:
    """The names of what a class or function takes; none where Python can't tell."""
    try:
        return frozenset(inspect.signature(factory).parameters)
    except (TypeError, ValueError):
        return frozenset()


def build(value: Any, what: str) -> Any:
    """The value with every {"$import": path, "kwargs": {…}} in it replaced by the object; without kwargs, the thing itself."""
    if isinstance(value, Mapping):
        if "$import" in value:
            found = import_object(value["$import"], what)
            return found(**build(value["kwargs"], what)) if "kwargs" in value else found
        return {key: build(inner, f"{what}[{key!r}]") for key, inner in value.items()}
    if isinstance(value, list):
        return [build(inner, f"{what}[{index}]") for index, inner in enumerate(value)]
    return value

"""The two names of one Lightning: what a user wrote for one package, for a model of the other."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec.errors import SparkDDPError

# Package of the Trainer -> beginnings of import paths that name the other one -> its own.
_OTHER = {
    "pytorch_lightning": {"lightning.pytorch": "pytorch_lightning", "lightning.fabric": "lightning_fabric"},
    "lightning.pytorch": {"pytorch_lightning": "lightning.pytorch", "lightning_fabric": "lightning.fabric"},
}


def of_package(package: str, value: Any) -> Any:
    """Plain data with each {"$import": path} of the other Lightning package as the same object of this one.

    Args:
        package: the Trainer's, `pytorch_lightning` or `lightning.pytorch`.
    """
    if isinstance(value, Mapping):
        return {key: _path(package, v) if key == "$import" else of_package(package, v) for key, v in value.items()}
    return [of_package(package, inner) for inner in value] if isinstance(value, list) else value


def _path(package: str, path: str) -> str:
    for other, own in _OTHER[package].items():
        if path.startswith((f"{other}.", f"{other}:")):
            return own + path.removeprefix(other)
    return path


def callback(package: str, body: type, *arguments: Any) -> Any:
    """A Callback of the package with the body's hooks: the two packages' base classes are unlike."""
    base = importlib.import_module(package).Callback
    return type(body.__name__.removeprefix("_"), (body, base), {})(*arguments)


def require_kind(made: Any, package: str, home: str, kind: str, what: str) -> Any:
    """What was made, which is a `kind` of `package.home`.

    Args:
        what: where the user wrote it, for the message.

    Raises:
        SparkDDPError: SDDP-409 when it is another thing, or of the other package.
    """
    if not isinstance(made, getattr(importlib.import_module(f"{package}.{home}"), kind)):
        raise SparkDDPError(
            "SDDP-409",
            f"{what} gives a {type(made).__name__}, which is no {package} {kind}.",
            f"Let the class extend {kind} of the same Lightning package as the model.",
        )
    return made

"""From an import path and plain keyword arguments to a LightningModule of either Lightning package."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from airflow_provider_sparkddp.runtime.imports import build, import_object
from airflow_provider_sparkddp.spec.arguments import convert
from airflow_provider_sparkddp.spec.errors import SparkDDPError

# `lightning` and `pytorch_lightning` are the same code under two names, and don't take each other's modules.
PACKAGES = ("pytorch_lightning", "lightning.pytorch")
# `float`, `float | None` and `Optional[float]`, as a type or as the text that a __future__ import leaves of it.
NUMBER = re.compile(
    r"^(?:typing\.)?(?P<optional>Optional\[)?(?P<type>int|float|bool)(?(optional)\])(?P<none> ?\| ?None)?$"
)


def construct(path: str, kwargs: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The module, and the arguments that rebuild it: those given and the defaults of the day, as plain data.

    Raises:
        SparkDDPError: SDDP-401 (can't be imported), SDDP-402 (not a LightningModule), SDDP-403 (arguments refused).
    """
    factory = import_object(path, "model")
    if not callable(factory):
        raise SparkDDPError("SDDP-402", f"model={path!r} is a {type(factory).__name__}.", "Name a class or a function.")
    if inspect.isclass(factory) and lightning_package(factory) is None:
        raise _not_lightning(path, factory.__name__)
    recorded = _recorded(factory, path, kwargs)
    try:
        module = factory(**build(recorded, "model_kwargs"))
    except SparkDDPError:
        raise
    except Exception as error:
        raise SparkDDPError(
            "SDDP-403",
            f"{path} refuses model_kwargs={dict(kwargs)!r}: {type(error).__name__}: {error}",
            "Correct model_kwargs; they are passed to the constructor as they stand.",
        ) from error
    if lightning_package(type(module)) is None:
        raise _not_lightning(path, type(module).__name__)
    return module, recorded


def lightning_package(cls: type) -> str | None:
    """The Lightning package whose LightningModule the class extends: its Trainer is the one to use."""
    for package in PACKAGES:
        # A class can extend only what is imported already: no need to import the other package.
        found = sys.modules.get(package)
        if found is not None and issubclass(cls, found.LightningModule):
            return package
    return None


def has_configure_model(module: Any) -> bool:
    """Whether the module's class has a `configure_model` of its own."""
    package = lightning_package(type(module))
    return (
        package is not None and type(module).configure_model is not sys.modules[package].LightningModule.configure_model
    )


def build_layers(module: Any, names: Collection[str]) -> None:
    """Call `configure_model`, as a Trainer does before it trains, where the module builds there what the names stand for.

    Args:
        names: those of the weights to come.

    Raises:
        SparkDDPError: SDDP-403 when it fails: outside of a training there is no device mesh.
    """
    if set(names) <= set(module.state_dict()) or not has_configure_model(module):
        return
    try:
        module.configure_model()
    except Exception as error:
        raise SparkDDPError(
            "SDDP-403",
            f"{type(module).__name__} builds its layers in configure_model, which fails outside of a training: "
            f"{type(error).__name__}: {error}",
            "Build the layers in __init__, or shard them only where self.device_mesh is not None.",
        ) from error


def _not_lightning(path: str, name: str) -> SparkDDPError:
    return SparkDDPError(
        "SDDP-402",
        f"model={path!r} gives a {name}, which is no LightningModule of {' or '.join(PACKAGES)}.",
        "Let the class extend LightningModule, or name a function that returns one.",
    )


def _recorded(factory: Callable[..., Any], path: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments with texts converted by the constructor's annotations, and its plain defaults added."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):
        return dict(kwargs)
    try:
        signature.bind(**kwargs)
    except TypeError as error:
        raise SparkDDPError(
            "SDDP-403",
            f"{path} refuses model_kwargs={dict(kwargs)!r}: {error}.",
            f"Its arguments are: {', '.join(signature.parameters) or 'none'}.",
        ) from None
    parameters = signature.parameters
    given = {k: _converted(k, v, parameters[k]) if k in parameters else v for k, v in kwargs.items()}
    named = {k: p for k, p in parameters.items() if p.kind is not p.POSITIONAL_ONLY}
    defaults = {k: p.default for k, p in named.items() if p.default is not p.empty and _plain(p.default)}
    return {**defaults, **given}


def _converted(name: str, value: Any, parameter: inspect.Parameter) -> Any:
    """A text that a template rendered, as the type that the constructor declares (or as that of its default)."""
    declared = parameter.annotation if parameter.annotation is not parameter.empty else type(parameter.default)
    written = NUMBER.match(declared.__name__ if isinstance(declared, type) else str(declared))
    if not isinstance(value, str) or not written:
        return value
    if value.strip() == "None" and (written["optional"] or written["none"]):
        return None
    return convert(f"model_kwargs[{name!r}]", value, written["type"])


def _plain(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError):
        return False

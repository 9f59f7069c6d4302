"""Which module may be imported for a stored model, and where a model lies."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.runtime.imports import import_object
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.checks.values import import_path
from airflow_provider_sparkddp.spec.errors import SparkDDPError

# Classes of these are loaded without being named: modules (torch.nn.Module) only, no other object.
ALWAYS = ("lightning", "pytorch_lightning", "airflow_provider_sparkddp")


def model_uri(path: str | Path) -> str:
    """A stored model's folder as a URI; a bare path means this computer's disk."""
    text = str(path).removesuffix("/model.json")
    return paths.absolute_uri(text if "://" in text else Path(text).absolute().as_uri(), "path")


def require_trusted(path: str, trusted: Sequence[str]) -> None:
    """Refuses an import path before anything of it is imported, and again what it turned out to name.

    Raises:
        SparkDDPError: SDDP-502.
    """
    require_trusted_name(path, trusted)
    found = import_object(path, "a stored model's class")
    origin = getattr(found, "__module__", None) or ""
    # `lightning.x:os.system` lies in a trusted module and isn't its own; `mine:Net.load_from_checkpoint` is a function of
    # Lightning, and unpickles. So no function of Lightning's is taken, however it is reached.
    if inspect.isclass(found):
        allowed = _within(origin, trusted) or (_within(origin, ALWAYS) and _is_module_class(found))
    else:
        allowed = inspect.isfunction(found) and _within(origin, trusted) and not _within(origin, ALWAYS)
    if not allowed:
        raise _untrusted(path, trusted, origin)


def require_trusted_name(path: str, trusted: Sequence[str]) -> None:
    """Refuses an import path by its name alone: nothing is imported. Raises SparkDDPError SDDP-502."""
    module = import_path("a stored model's import path", path).partition(":")[0]
    if not _within(module, [*trusted, *ALWAYS]):
        raise _untrusted(path, trusted, module)


def _is_module_class(found: Any) -> bool:
    import torch

    return issubclass(found, torch.nn.Module)


def _within(module: str, roots: Sequence[str]) -> bool:
    return any(module == root or module.startswith(f"{root}.") for root in roots)


def _untrusted(path: str, trusted: Sequence[str], origin: str) -> SparkDDPError:
    of = "" if origin == path.partition(":")[0] else f", which belongs to {origin or 'no module'}"
    remedy = f"If you trust that code, give trusted_modules=[{origin!r}, …]."
    if not origin or _within(origin, ALWAYS):
        remedy = "Name a class or a function of your own; of Lightning and this package only modules are loaded."
    return SparkDDPError(
        "SDDP-502", f"the stored model names {path!r}{of}; trusted are {', '.join([*ALWAYS, *trusted])}.", remedy
    )

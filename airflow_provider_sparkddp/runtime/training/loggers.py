"""Loggers of the module's own Lightning package, or a user's. Their files lie in a folder that is copied to the run's storage."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.runtime.imports import build, import_object, parameters
from airflow_provider_sparkddp.runtime.training.lightning_names import of_package, require_kind
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.objects import LOGGERS, listed

_SHORT = {class_name: name for name, class_name in LOGGERS.items()}


def loggers(package: str, requested: Any, folder: Path, uri: str) -> dict[str, Any]:
    """Label -> logger, in the order of trainer["logger"].

    Args:
        package: the Trainer's.
        folder: each logger that takes a `save_dir` gets `folder/label`.
        uri: where the folder is copied to.

    Raises:
        SparkDDPError: SDDP-311 when a logger's package is missing, SDDP-401 when a path can't be imported, SDDP-409 when an object
            is no Logger.
    """
    made: dict[str, Any] = {}
    for wanted in listed(requested):
        written = of_package(package, _written(package, wanted))
        cls = import_object(written["$import"], "trainer['logger']")
        label = _free(
            _SHORT.get(written["$import"].rpartition(":")[2], paths.slug(written["$import"].rpartition(":")[2])), made
        )
        given = build(written.get("kwargs", {}), "trainer['logger']['kwargs']")
        made[label] = _made(package, cls, _places(cls, given, label, folder, uri) | given)
    return made


def _written(package: str, wanted: Any) -> Mapping[str, Any]:
    """{"$import": …, "kwargs": {…}} of a short name, and of True: Lightning's default."""
    if wanted is True:
        found = any(importlib.util.find_spec(name) for name in ("tensorboard", "tensorboardX"))
        wanted = "tensorboard" if found else "csv"
    return {"$import": f"{package}.loggers:{LOGGERS[wanted]}"} if isinstance(wanted, str) else wanted


def _free(label: str, taken: Mapping[str, Any]) -> str:
    number = 2
    free = label
    while free in taken:
        free, number = f"{label}-{number}", number + 1
    return free


def _places(cls: Any, given: Mapping[str, Any], label: str, folder: Path, uri: str) -> dict[str, str]:
    """The arguments that say where a logger's files lie, as far as it takes them."""
    taken = parameters(cls)
    if "save_dir" not in taken:
        return {}
    places = {"save_dir": str(folder / label)}
    if "tracking_uri" in taken and not (given.get("tracking_uri") or os.environ.get("MLFLOW_TRACKING_URI")):
        # MLflow's own files instead of a server: since 3.7 it wants to be asked for them.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        # What is recorded for artifacts would be a path of this executor.
        places["artifact_location"] = paths.fsspec_uri(paths.join(uri, label, "artifacts"))
    return places


def _made(package: str, cls: Any, kwargs: Mapping[str, Any]) -> Any:
    name = getattr(cls, "__name__", str(cls))
    try:
        made = cls(**kwargs)
    except ImportError as error:
        extra = _SHORT.get(name)
        remedy = (
            f"pip install 'airflow-provider-sparkddp[{extra}]'" if extra in ("tensorboard", "mlflow") else "Install it"
        )
        raise SparkDDPError(
            "SDDP-311",
            f"the logger {name} needs a package that {platform.node()} lacks ({' '.join(str(error).split())})",
            f"{remedy} on the executors.",
        ) from error
    return require_kind(made, package, "loggers", "Logger", "trainer['logger']")

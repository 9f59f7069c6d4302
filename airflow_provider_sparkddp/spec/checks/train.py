"""Checks of SparkDDPTrainOperator's arguments against one another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec import compat
from airflow_provider_sparkddp.spec.arguments import UNKNOWN
from airflow_provider_sparkddp.spec.checks.tune import check_tune
from airflow_provider_sparkddp.spec.checks.values import OBJECTS, check_json, import_path, one_of, run_dir
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.ports import ports

ALIAS = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")


def check_train(arguments: dict[str, Any]) -> None:
    run_dir(arguments)
    if "trainer" in arguments:
        arguments["trainer"] = compat.check_trainer(arguments["trainer"] or {})
    check_tune(arguments)
    if arguments.get("model"):
        import_path("model", arguments["model"])
    if arguments.get("alias") and not ALIAS.match(arguments["alias"]):
        raise SparkDDPError(
            "SDDP-101",
            f"alias={arguments['alias']!r} can't name a column and a folder.",
            "Use letters, digits, '_', '-' and '.', beginning with a letter or digit, at most 100.",
        )
    if arguments.get("max_restarts"):
        raise SparkDDPError(
            "SDDP-102",
            f"max_restarts={arguments['max_restarts']} is set; this version can't resume a training yet.",
            "Leave it at 0; Airflow's retries start the task again.",
        )
    if arguments.get("port_range"):
        ports(arguments["port_range"])
    _check_on_nan(arguments)
    _check_features(arguments)
    check_json("model_kwargs", arguments.get("model_kwargs"), OBJECTS)
    check_json("trainer", arguments.get("trainer"), OBJECTS)
    _check_callbacks(arguments.get("trainer") or {})


def _check_on_nan(arguments: dict[str, Any]) -> None:
    if arguments.get("on_nan") == "skip":
        raise SparkDDPError("SDDP-102", "on_nan='skip' is set; this version can't do that yet.", "Use 'stop'.")
    if arguments.get("on_nan"):
        one_of("on_nan", arguments["on_nan"], ("stop",))


def _check_features(arguments: dict[str, Any]) -> None:
    features = arguments.get("features")
    if features is None:
        return
    if not features:
        raise SparkDDPError("SDDP-101", "features is empty.", "List the columns that the model learns from.")
    doubled = sorted({f for f in features if features.count(f) > 1})
    if doubled:
        raise SparkDDPError("SDDP-204", f"features names {doubled[0]!r} twice.", "Name each feature once.")
    if arguments.get("target") in features:
        raise SparkDDPError(
            "SDDP-204",
            f"target {arguments['target']!r} is also a feature: the model would be given the answer.",
            "Take it out of features.",
        )


def _check_callbacks(trainer: Mapping[str, Any]) -> None:
    """One {"$import": …, "kwargs": {…}} or a list of them."""
    callbacks = trainer.get("callbacks") or []
    for callback in [callbacks] if isinstance(callbacks, Mapping) else callbacks:
        if callback is not UNKNOWN and not (isinstance(callback, Mapping) and "$import" in callback):
            raise SparkDDPError(
                "SDDP-101",
                f"trainer['callbacks'] holds {callback!r}.",
                "Write each callback as {'$import': 'pkg.mod:Class', 'kwargs': {…}}.",
            )

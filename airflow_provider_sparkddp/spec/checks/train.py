"""Checks of SparkDDPTrainOperator's arguments against one another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec import compat
from airflow_provider_sparkddp.spec.arguments import UNKNOWN, convert
from airflow_provider_sparkddp.spec.checks.start import check_init_from
from airflow_provider_sparkddp.spec.checks.tune import check_tune
from airflow_provider_sparkddp.spec.checks.values import OBJECTS, check_json, import_path, one_of, run_dir
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.ports import ports

# Lightning's EarlyStopping: argument -> its type.
EARLY_STOPPING = {
    "monitor": "str",
    "mode": "str",
    "patience": "int",
    "min_delta": "float",
    "stopping_threshold": "float",
    "divergence_threshold": "float",
    "check_finite": "bool",
    "check_on_train_epoch_end": "bool",
    "strict": "bool",
    "verbose": "bool",
    "log_rank_zero_only": "bool",
}
BEST_WEIGHTS = {"monitor": "str", "mode": "str"}
CHECKPOINTS = re.compile(r"^(pytorch_lightning|lightning\.pytorch)\.callbacks[\w.]*:(\w*Checkpoint)$")

ALIAS = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")


def check_train(arguments: dict[str, Any]) -> None:
    run_dir(arguments)
    if "trainer" in arguments:
        arguments["trainer"] = compat.check_trainer(arguments["trainer"] or {})
    if "init_from" in arguments:
        arguments["init_from"] = check_init_from(arguments["init_from"])
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
    if arguments.get("num_nodes") and arguments.get("devices") and arguments.get("ranks_per_task"):
        require_whole_tasks(arguments["num_nodes"] * arguments["devices"], arguments["ranks_per_task"])
    arguments |= {
        name: _monitor(name, arguments.get(name), keys)
        for name, keys in (("early_stopping", EARLY_STOPPING), ("best_weights", BEST_WEIGHTS))
        if name in arguments
    }
    _check_on_nan(arguments)
    _check_engine(arguments)
    _check_features(arguments)
    check_json("model_kwargs", arguments.get("model_kwargs"), OBJECTS)
    check_json("trainer", arguments.get("trainer"), OBJECTS)
    _check_callbacks(arguments.get("trainer") or {})


def require_whole_tasks(world_size: int, ranks_per_task: int) -> None:
    """Raises SparkDDPError SDDP-101 where the ranks don't fill their tasks."""
    if world_size % ranks_per_task:
        raise SparkDDPError(
            "SDDP-101",
            f"ranks_per_task={ranks_per_task} doesn't divide num_nodes x devices, which is {world_size}.",
            "Set it to devices, for one task a node, or leave it at 1.",
        )


def require_validation(arguments: Mapping[str, Any], rows: int) -> None:
    """Raises SparkDDPError SDDP-101 where a validation is watched and the partitions hold no rows for one."""
    stop = arguments.get("early_stopping") or {}
    watching = [] if not stop or stop.get("check_on_train_epoch_end") else ["early_stopping"]
    watching += ["best_weights"] if arguments.get("best_weights") else []
    if watching and not rows:
        raise SparkDDPError(
            "SDDP-101",
            f"{watching[0]} watches {arguments[watching[0]]['monitor']!r}, and the partitions hold no rows for validation.",
            "Partition with validation=0.1; a metric of the training is watched with early_stopping's check_on_train_epoch_end=True.",
        )


def no_checkpoints(name: str) -> SparkDDPError:
    """The refusal of a callback that writes checkpoints."""
    return SparkDDPError(
        "SDDP-102",
        f"trainer['callbacks'] holds a {name}, and this version keeps no checkpoints.",
        "Set best_weights='val_…' to get the weights of the best validation.",
    )


def _monitor(name: str, value: Any, keys: Mapping[str, str]) -> dict[str, Any] | None:
    """A metric's name, or a dict with `monitor`, as the dict; texts in it converted."""
    if not value:
        return None
    given = {"monitor": value} if isinstance(value, str) else dict(value)
    for key in given:
        one_of(f"a key of {name}", key, tuple(keys))
    if given.get("monitor") in (None, ""):
        raise SparkDDPError("SDDP-101", f"{name} has no monitor.", f"Write {name}='val_…', or {{'monitor': 'val_…'}}.")
    given = {key: None if v is None else convert(f"{name}[{key!r}]", v, keys[key]) for key, v in given.items()}
    given["mode"] = given.get("mode") or "min"
    one_of(f"{name}['mode']", given["mode"], ("min", "max"))
    return given


def _check_on_nan(arguments: dict[str, Any]) -> None:
    if arguments.get("on_nan"):
        one_of("on_nan", arguments["on_nan"], ("stop", "skip"))


def _check_engine(arguments: Mapping[str, Any]) -> None:
    """DeepSpeed keeps gradients and the weights that count inside of its engine."""
    strategy = str((arguments.get("trainer") or {}).get("strategy"))
    set_ = ["on_nan"] if arguments.get("on_nan") == "skip" else []
    set_ += ["best_weights"] if arguments.get("best_weights") else []
    if set_ and strategy.startswith("deepspeed"):
        raise SparkDDPError(
            "SDDP-101",
            f"{set_[0]}={arguments[set_[0]]!r} is set, and strategy={strategy!r} keeps weights and gradients in its own engine.",
            f"Leave {set_[0]} out, or use strategy='fsdp'.",
        )


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
        if isinstance(callback, Mapping) and (found := CHECKPOINTS.match(str(callback["$import"]))):
            raise no_checkpoints(found[2])

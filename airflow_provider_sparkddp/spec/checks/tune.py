"""Checks of `tune`: what is looked for before training, under the argument names of Lightning's Tuner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec import seams
from airflow_provider_sparkddp.spec.arguments import UNKNOWN, Argument, check_arguments, convert
from airflow_provider_sparkddp.spec.checks.values import one_of
from airflow_provider_sparkddp.spec.errors import SparkDDPError

# Lightning leaves out the first 10 points and the last one, and a slope needs two.
FEWEST_POINTS = 13
LR_MODES = ("exponential", "linear")
BATCH_SIZE_MODES = ("power", "binsearch")
# Names of Lightning's `Tuner.lr_find` and `Tuner.scale_batch_size`; what isn't set has Lightning's own default.
TUNE: dict[str, dict[str, Argument]] = {
    "lr": {
        "min_lr": Argument("float", minimum=0),
        "max_lr": Argument("float", minimum=0),
        "num_training": Argument("int", minimum=FEWEST_POINTS, maximum=10_000),
        "mode": Argument("str"),
        "early_stop_threshold": Argument("float", minimum=0),
        "attr_name": Argument("str"),
    },
    "batch_size": {
        "mode": Argument("str"),
        "steps_per_trial": Argument("int", minimum=1),
        "init_val": Argument("int", minimum=1),
        "max_trials": Argument("int", minimum=1),
        "margin": Argument("float", minimum=0, maximum=0.99),
        "max_val": Argument("int", minimum=1),
    },
}


def check_tune(arguments: dict[str, Any]) -> None:
    """Makes arguments["tune"] {"lr": {…}, "batch_size": {…}}, with those that are asked for; {} for none.

    Raises:
        SparkDDPError: SDDP-101 for unknown names and wrong values, SDDP-103 for what can't be tuned.
    """
    given = arguments.get("tune") or {}
    for name in given:
        one_of("a key of tune", name, tuple(TUNE))
    asked = {name: _asked(name, value) for name, value in given.items()}
    found = {name: value for name, value in asked.items() if value is not None}
    if found:
        _check_trainer(arguments.get("trainer") or {})
    if "tune" in arguments:
        arguments["tune"] = found


def _asked(name: str, value: Any) -> dict[str, Any] | None:
    """Lightning's arguments; None where it is switched off, or not known yet."""
    value = convert(f"tune[{name!r}]", value, "switch")
    if value is UNKNOWN or value is None or value is False:
        return None
    if isinstance(value, str) and name == "batch_size":
        value = {"mode": value}
    given = {} if value is True else convert(f"tune[{name!r}]", value, "dict")
    for key in given:
        one_of(f"a key of tune[{name!r}]", key, tuple(TUNE[name]))
    checked = check_arguments(TUNE[name], given)
    # None switches this one off; for the others it is the default.
    kept = {k: v for k, v in checked.items() if v is not None or (k == "early_stop_threshold" and k in given)}
    if "mode" in kept:
        one_of(f"tune[{name!r}]['mode']", kept["mode"], LR_MODES if name == "lr" else BATCH_SIZE_MODES)
    if name == "lr":
        _check_range(kept.get("min_lr", 1e-8), kept.get("max_lr", 1.0))
    return kept


def _check_range(low: float, high: float) -> None:
    if not 0 < low < high:
        raise SparkDDPError(
            "SDDP-101", f"tune['lr'] searches from {low:g} to {high:g}.", "Set min_lr above 0 and max_lr above min_lr."
        )


def _check_trainer(trainer: Mapping[str, Any]) -> None:
    strategy = trainer.get("strategy")
    if not isinstance(strategy, Mapping) and seams.normal("strategy", strategy) in seams.SHARDED:
        raise SparkDDPError(
            "SDDP-103",
            f"tune is set with strategy={strategy!r}: tuning runs on one rank, which couldn't hold the whole model.",
            "Leave tune out, or use strategy='ddp'.",
        )
    if trainer.get("fast_dev_run"):
        raise SparkDDPError(
            "SDDP-103", "tune is set with trainer['fast_dev_run'], in which Lightning tunes nothing.", "Leave one out."
        )

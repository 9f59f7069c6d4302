"""How the ranks agree: from a strategy's name, or a user's own, to one of Lightning's objects."""

from __future__ import annotations

from typing import Any

from airflow_provider_sparkddp.runtime.imports import build
from airflow_provider_sparkddp.runtime.training.lightning_names import require_kind
from airflow_provider_sparkddp.runtime.training.strategies import ddp, sharded
from airflow_provider_sparkddp.runtime.training.strategies.exact import exact
from airflow_provider_sparkddp.spec.seams import is_own, normal


def name_of(requested: Any, world_size: int) -> str:
    """The strategy's full name, or the user's import path."""
    if is_own(requested):
        return str(requested["$import"])
    name = str(normal("strategy", requested))
    if name == "auto":
        return "ddp" if world_size > 1 else "single_device"
    return name


def strategy(package: str, requested: Any, device: str, world_size: int, batch_size: int) -> Any:
    """The strategy of the Trainer's package, with exact means; environment, hardware and number format are the Trainer's to add.

    Args:
        requested: trainer["strategy"].
        device: torch device type.
        batch_size: rows a rank and step; DeepSpeed wants to know.

    Raises:
        SparkDDPError: SDDP-311 when its package is missing, SDDP-409 when the user's own is no strategy.
    """
    name = name_of(requested, world_size)
    if is_own(requested):
        return exact(_own(package, requested))
    if name == "single_device":
        return exact(ddp.single_device(package, device))
    if name == "model_parallel":
        return exact(sharded.model_parallel(package))
    if name == "fsdp":
        return exact(sharded.fsdp(package))
    if name.startswith("deepspeed"):
        return exact(sharded.deepspeed(package, name, batch_size))
    return exact(ddp.ddp(package, name))


def _own(package: str, requested: Any) -> Any:
    built = build({"kwargs": {}, **requested}, "trainer['strategy']")
    return require_kind(built, package, "strategies", "Strategy", f"trainer['strategy']={requested['$import']!r}")

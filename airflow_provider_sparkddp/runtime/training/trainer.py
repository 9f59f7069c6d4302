"""Puts the seams together into a Trainer: the only file that knows them all."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.imports import build
from airflow_provider_sparkddp.runtime.training.accelerators.choose import choose
from airflow_provider_sparkddp.runtime.training.environment import barrier_environment
from airflow_provider_sparkddp.runtime.training.group import TIMEOUT
from airflow_provider_sparkddp.runtime.training.precision import formats
from airflow_provider_sparkddp.runtime.training.strategies import ddp

DEFAULT_MAX_EPOCHS = 10


@dataclass(frozen=True)
class Seams:
    """What was chosen: accelerator ("cpu" or "cuda"), the group's backend, Lightning's precision name."""

    accelerator: str
    backend: str
    precision: str

    @classmethod
    def of(cls, trainer: Mapping[str, Any], info: RankInfo) -> Seams:
        """Raises SparkDDPError SDDP-307 when a GPU was asked for and there is none."""
        accelerator = choose(trainer.get("accelerator") or "auto", info.gpus, torch.cuda.is_available())
        return cls(accelerator, ddp.BACKENDS[accelerator], formats.build(trainer.get("precision")))


def build_trainer(
    package: str, arguments: Mapping[str, Any], seams: Seams, info: RankInfo, callbacks: Sequence[Any], root_dir: str
) -> Any:
    """A Trainer of the module's own package, with the user's arguments and ours."""
    ours = {"accelerator", "strategy", "precision", "callbacks", "logger", "enable_checkpointing"}
    given = build({k: v for k, v in arguments.items() if k not in ours and v is not None}, "trainer")
    if not {"max_epochs", "max_steps", "max_time"} & set(given):
        given["max_epochs"] = DEFAULT_MAX_EPOCHS
    users = build(_instances(arguments.get("callbacks") or []), "trainer['callbacks']")
    strategy = arguments.get("strategy") or "auto"
    environment = barrier_environment(package, info)
    return importlib.import_module(package).Trainer(
        **{"enable_model_summary": False, "enable_progress_bar": False, **given},
        logger=False,
        accelerator=seams.accelerator,
        strategy=ddp.build(package, strategy, environment, seams.accelerator, TIMEOUT),
        precision=seams.precision,
        devices=1,
        num_nodes=info.world_size,
        callbacks=[*users, *callbacks],
        default_root_dir=root_dir,
        enable_checkpointing=False,
        use_distributed_sampler=False,
    )


def _instances(callbacks: Any) -> list[Any]:
    """A callback written without kwargs is made without arguments: its class alone would be none."""
    listed = [callbacks] if isinstance(callbacks, Mapping) else callbacks
    return [{"kwargs": {}, **callback} for callback in listed]

"""Puts the seams together into a Trainer: the only file that knows them all."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.imports import build
from airflow_provider_sparkddp.runtime.models.construct import PACKAGES, lightning_package
from airflow_provider_sparkddp.runtime.training import own
from airflow_provider_sparkddp.runtime.training.accelerators.choose import Hardware, hardware
from airflow_provider_sparkddp.runtime.training.attached import Attached
from airflow_provider_sparkddp.runtime.training.environment import barrier_environment
from airflow_provider_sparkddp.runtime.training.lightning_names import of_package
from airflow_provider_sparkddp.runtime.training.plugins import Plugins
from airflow_provider_sparkddp.runtime.training.precision.formats import Format, number_format
from airflow_provider_sparkddp.runtime.training.strategies import choose, sharded
from airflow_provider_sparkddp.runtime.training.strategies.harvest import harvest
from airflow_provider_sparkddp.spec import seams

DEFAULT_MAX_EPOCHS = 10


@dataclass(frozen=True)
class Seams:
    """What was chosen: hardware, how the ranks agree, number format.

    Attributes:
        package: the Lightning package that the module extends; every object of the Trainer's is of it.
        strategy: Lightning's object, not yet in a Trainer.
        sharded: whether a rank alone doesn't hold the whole model.
        plugins: the user's, but for a number format.
    """

    package: str
    hardware: Hardware
    strategy: Any
    strategy_name: str
    format: Format
    sharded: bool
    plugins: tuple[Any, ...] = ()

    @classmethod
    def of(cls, module: Any, trainer: Mapping[str, Any], info: RankInfo, batch_size: int) -> Seams:
        """For the module's own Lightning package.

        Raises:
            SparkDDPError: SDDP-103, 104, 307, 311, 401, 408 or 409 where one can't be had.
        """
        package = lightning_package(type(module)) or PACKAGES[0]
        seams.require_ranks(trainer, info.world_size)
        chosen, wanted = hardware(trainer.get("accelerator"), info.gpus), trainer.get("strategy")
        strategy = choose.strategy(package, wanted, chosen.device, info.world_size, batch_size)
        sharded.require_configure_model(package, strategy, module)
        plugins, device = Plugins.of(package, trainer), chosen.device
        given = Format(plugins.name, plugins.precision) if plugins.precision else None
        return cls(
            package=package,
            hardware=chosen,
            strategy=strategy,
            strategy_name=choose.name_of(wanted, info.world_size),
            format=given or number_format(package, trainer.get("precision"), device),
            sharded=sharded.is_sharded(package, strategy),
            plugins=plugins.others,
        )

    def alone(self, plugins: tuple[Any, ...]) -> Seams:
        """The same hardware and number format for one rank without a group, with other plugins; nothing is shared."""
        strategy = choose.strategy(self.package, "single_device", self.hardware.device, 1, 1)
        own = {"strategy": strategy, "strategy_name": "single_device", "sharded": False}
        return replace(self, **own, plugins=plugins, format=copy.deepcopy(self.format))

    def harvest(self, sample: Any) -> Any | None:
        """The callback that gathers a sharded model at the training's end; None where rank 0 holds the whole of it."""
        return harvest(self.package, sample) if self.sharded else None

    def told(self) -> dict[str, Any]:
        """For the rank's report."""
        return {
            "accelerator": self.hardware.name,
            "backend": self.hardware.backend,
            "strategy": self.strategy_name,
            "precision": self.format.name,
        }


def build_trainer(
    arguments: Mapping[str, Any],
    chosen: Seams,
    info: RankInfo,
    callbacks: Sequence[Any],
    root_dir: str,
    attached: Attached | None = None,
) -> Any:
    """A Trainer of the module's own package, with the user's arguments and ours.

    Args:
        attached: loggers and profiler.
    """
    ours = {*seams.VALUES, "callbacks", "logger", "profiler", "enable_checkpointing", "plugins"}
    given = build({k: v for k, v in arguments.items() if k not in ours and v is not None}, "trainer")
    if not {"max_epochs", "max_steps", "max_time"} & set(given):
        given["max_epochs"] = DEFAULT_MAX_EPOCHS
    users = build(of_package(chosen.package, _instances(arguments.get("callbacks") or [])), "trainer['callbacks']")
    own.require_no_checkpoint(chosen.package, users)
    watching = attached.callbacks if attached else []
    trainer = importlib.import_module(chosen.package).Trainer(
        **{"enable_model_summary": False, "enable_progress_bar": False, **given},
        logger=list(attached.loggers.values()) if attached else False,
        profiler=attached.profiler if attached else None,
        accelerator=chosen.hardware.accelerator,
        strategy=chosen.strategy,
        precision=None if chosen.format.plugin else chosen.format.name,
        plugins=_plugins(chosen, info),
        devices=1,
        num_nodes=info.world_size,
        callbacks=[*users, *callbacks, *watching],
        default_root_dir=root_dir,
        enable_checkpointing=False,
        use_distributed_sampler=False,
    )
    own.require_no_processes(chosen.package, trainer)
    return trainer


def _plugins(chosen: Seams, info: RankInfo) -> list[Any]:
    environment = barrier_environment(chosen.package, info)
    formats = [chosen.format.plugin] if chosen.format.plugin else []
    return [environment, *formats, *chosen.plugins]


def _instances(callbacks: Any) -> list[Any]:
    """A callback written without kwargs is made without arguments: its class alone would be none."""
    listed = [callbacks] if isinstance(callbacks, Mapping) else callbacks
    return [{"kwargs": {}, **callback} for callback in listed]

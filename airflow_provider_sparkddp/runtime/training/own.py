"""What a user's own callbacks and strategy must not do."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from airflow_provider_sparkddp.spec.checks.train import no_checkpoints
from airflow_provider_sparkddp.spec.errors import SparkDDPError


def require_no_checkpoint(package: str, callbacks: Sequence[Any]) -> None:
    """Raises SparkDDPError SDDP-102 for a callback that writes checkpoints."""
    base = importlib.import_module(f"{package}.callbacks").Checkpoint
    for callback in callbacks:
        if isinstance(callback, base):
            raise no_checkpoints(type(callback).__name__)


def require_no_processes(package: str, trainer: Any) -> None:
    """Raises SparkDDPError SDDP-409 when the Trainer's strategy starts processes."""
    strategy = trainer.strategy
    # Lightning gives DDP a launcher of scripts, which starts none where the environment says that ranks are there.
    harmless = importlib.import_module(f"{package}.strategies.launchers")._SubprocessScriptLauncher
    if strategy.launcher is None or isinstance(strategy.launcher, harmless):
        return
    raise SparkDDPError(
        "SDDP-409",
        f"trainer['strategy'] gives a {type(strategy).__name__} that starts processes itself; each rank is a Spark task already.",
        "Leave out start_method and launchers of your own.",
    )

"""The weights of the best validation, kept on the CPU and put back when the training ends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from airflow_provider_sparkddp.runtime.training.callbacks.missing import require_logged


class Best:
    """Each rank keeps what it holds: the whole model, or its shard.

    Attributes:
        told: monitor, mode, its best value, epoch (from 0) and step of that validation, and its metrics; empty before the first.
    """

    def __init__(self, monitor: str, mode: str) -> None:
        self.monitor, self.mode = monitor, mode
        self.kept: list[Any] = []
        self.earlier: dict[str, Any] = {}
        self.told: dict[str, Any] = {}

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        self.earlier = dict(trainer.callback_metrics)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if trainer.sanity_checking:
            return
        metrics = trainer.callback_metrics
        require_logged(self.monitor, "best_weights", metrics)
        value = float(metrics[self.monitor])
        # Equal on all ranks; rank 0 decides all the same, as shards of two validations are no model.
        if not trainer.strategy.broadcast(self._is_better(value)):
            return
        fresh = {name: float(v) for name, v in metrics.items() if v is not self.earlier.get(name)}
        self.kept = [tensor.to("cpu", copy=True) for tensor in _held(module)]
        self.told = {
            "monitor": self.monitor,
            "mode": self.mode,
            "value": value,
            "epoch": trainer.current_epoch,
            "step": trainer.global_step,
            "metrics": {name: v if math.isfinite(v) else None for name, v in fresh.items()},
        }

    def on_train_end(self, trainer: Any, module: Any) -> None:
        for tensor, kept in zip(_held(module), self.kept, strict=bool(self.kept)):
            tensor.copy_(kept)

    def _is_better(self, value: float) -> bool:
        best = self.told.get("value")
        if math.isnan(value) or best is None:
            return not math.isnan(value)
        return bool(value > best if self.mode == "max" else value < best)


def _held(module: Any) -> Iterator[Any]:
    """What this rank holds of the module's parameters and buffers; to be written in place."""
    for tensor in (*module.parameters(), *module.buffers()):
        local = tensor.detach()
        yield local.to_local() if hasattr(local, "to_local") else local

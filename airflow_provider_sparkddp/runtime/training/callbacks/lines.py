"""The lines in the task's log that say how far the training is, as rank 0 tells them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.runtime.progress.channel import Channel
from airflow_provider_sparkddp.runtime.progress.pace import seconds_left

SECONDS_BETWEEN_LINES = 10.0
# Epochs may be short and many: the first ones have a line each, later ones at most one in so many seconds.
EPOCHS_AT_ONCE = 20


class Lines:
    """Decides when a line is due, and how long the whole training still takes."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._begun = (0, 0)
        self._epochs_told = 0
        self._untold: dict[str, Any] | None = None
        self._started = self._told = time.monotonic()

    def begin(self, trainer: Any) -> None:
        """The training begins or goes on from a checkpoint: what was done before says nothing of the pace."""
        self._started = self._told = time.monotonic()
        self._begun = (trainer.current_epoch, trainer.global_step)

    def due(self) -> bool:
        return time.monotonic() - self._told >= SECONDS_BETWEEN_LINES

    def within_epoch(self, trainer: Any, step: int, metrics: Mapping[str, Any], rows_per_second: float) -> None:
        self._tell(self._event(trainer, step, metrics, rows_per_second))

    def epoch(self, trainer: Any, step: int, metrics: Mapping[str, Any], rows_per_second: float) -> None:
        self._untold = self._event(trainer, step, metrics, rows_per_second)
        if self._epochs_told < EPOCHS_AT_ONCE or self.due():
            self._epochs_told += 1
            self._tell(self._untold)

    def end(self) -> None:
        """The last epoch has its line, however soon after another."""
        if self._untold:
            self._tell(self._untold)

    def _tell(self, event: dict[str, Any]) -> None:
        self._told, self._untold = time.monotonic(), None
        self._channel.event(event)

    def _event(self, trainer: Any, step: int, metrics: Mapping[str, Any], rows_per_second: float) -> dict[str, Any]:
        steps = max(int(trainer.num_training_batches), 1)
        return {
            "epoch": trainer.current_epoch + 1,
            "epochs": trainer.max_epochs,
            "step": step,
            "steps": steps,
            "metrics": dict(metrics),
            "rows_per_second": round(rows_per_second),
            "seconds": round(time.monotonic() - self._started, 1),
            "seconds_left": self._seconds_left(trainer, trainer.current_epoch + step / steps),
        }

    def _seconds_left(self, trainer: Any, epochs: float) -> float | None:
        begun_epoch, begun_step = self._begun
        limits = []
        if trainer.max_epochs and trainer.max_epochs > 0:
            limits.append((epochs - begun_epoch, trainer.max_epochs - begun_epoch))
        if trainer.max_steps > 0:
            limits.append((trainer.global_step - begun_step, trainer.max_steps - begun_step))
        # Lightning turns max_time into a callback.
        timers = [each.time_remaining() for each in trainer.callbacks if hasattr(each, "time_remaining")]
        until = min((left for left in timers if left is not None), default=None)
        left = seconds_left(time.monotonic() - self._started, limits, until)
        return None if left is None else round(left, 1)

"""Losses and metrics of every epoch, the pace, and a stop when the loss is no number."""

from __future__ import annotations

import importlib
import math
import time
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.progress.writer import ProgressWriter
from airflow_provider_sparkddp.spec.errors import SparkDDPError

SECONDS_BETWEEN_LINES = 10.0


class _Recorder:
    """The callback's body; the base class comes from the Trainer's own package.

    Attributes:
        history: one dict an epoch: epoch, step, loss (mean over all ranks' rows), metrics, rows_per_second, seconds.
        first_step_at: Unix time of the first training batch.
    """

    def __init__(self, info: RankInfo, progress: ProgressWriter | None, rank_rows: list[int]) -> None:
        super().__init__()
        self.info, self.progress, self.total_rows = info, progress, sum(rank_rows)
        self.history: list[dict[str, Any]] = []
        self.first_step_at: float | None = None
        self.started = self.told = time.monotonic()
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.loss_sum: Any = 0.0
        self.rows = 0
        self.epoch_started = time.monotonic()

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        self._begin_epoch()

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        if self.first_step_at is None:
            self.first_step_at = time.time()

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is None:
            return  # manual optimisation: what its step returns is its own affair
        rows = len(batch[0])
        loss = loss.detach().float()
        if loss.device.type == "cpu":
            # On CUDA this would wait for the device at every step; there the epoch's end finds it.
            self._stop_on_nan(float(loss), trainer)
        self.loss_sum, self.rows = self.loss_sum + loss * rows, self.rows + rows
        if self.progress and time.monotonic() - self.told >= SECONDS_BETWEEN_LINES:
            self._tell(trainer, {"loss": float(loss)}, batch_idx + 1)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        loss = self._mean_loss(module)
        if loss is not None:
            self._stop_on_nan(loss, trainer)
        seconds = max(time.monotonic() - self.epoch_started, 1e-9)
        entry = {
            "epoch": trainer.current_epoch,
            "step": trainer.global_step,
            "loss": loss,
            "metrics": numbers(trainer.callback_metrics),
            "rows_per_second": round(self.total_rows / seconds, 1),
            "seconds": round(seconds, 3),
        }
        self.history.append(entry)
        self._tell(trainer, {"loss": loss, **entry["metrics"]}, trainer.num_training_batches)

    def _mean_loss(self, module: Any) -> float | None:
        """The mean over the rows of all ranks, None when no rank told a loss. A collective: every rank comes here."""
        import torch
        import torch.distributed as dist

        total = torch.stack([torch.as_tensor(self.loss_sum), torch.tensor(float(self.rows))]).to(module.device)
        dist.all_reduce(total)
        return float(total[0] / total[1]) if total[1] else None

    def _stop_on_nan(self, loss: float, trainer: Any) -> None:
        if not math.isfinite(loss):
            raise SparkDDPError(
                "SDDP-406",
                f"the loss is {loss} on rank {self.info.rank} at epoch {trainer.current_epoch}, step {trainer.global_step}.",
                "Lower the learning rate, clip gradients (trainer={'gradient_clip_val': …}), or scale the features.",
            )

    def _tell(self, trainer: Any, metrics: dict[str, Any], step: int) -> None:
        if not self.progress:
            return
        self.told = time.monotonic()
        elapsed = max(time.monotonic() - self.epoch_started, 1e-9)
        batches = max(int(trainer.num_training_batches), 1)
        event = {
            "epoch": trainer.current_epoch + 1,
            "epochs": trainer.max_epochs,
            "step": step,
            "steps": batches,
            "metrics": metrics,
            "rows_per_second": round(self.total_rows * min(step / batches, 1.0) / elapsed),
            "seconds": round(time.monotonic() - self.started, 1),
        }
        self.progress.write(event)


def numbers(metrics: Any) -> dict[str, float | None]:
    """Single values as plain numbers; None for NaN and infinities, which aren't JSON."""
    single = {name: float(value) for name, value in metrics.items() if getattr(value, "numel", lambda: 1)() == 1}
    return {name: value if math.isfinite(value) else None for name, value in single.items()}


def recorder(package: str, info: RankInfo, progress: ProgressWriter | None, rank_rows: list[int]) -> Any:
    """A Callback of the given Trainer's package."""
    base = importlib.import_module(package).Callback
    return type("Recorder", (_Recorder, base), {})(info, progress, rank_rows)

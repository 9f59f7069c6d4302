"""Losses and metrics of every epoch, the pace, the figures of the rank, and a stop when the loss is no number."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.progress.channel import Channel
from airflow_provider_sparkddp.runtime.progress.history import History
from airflow_provider_sparkddp.runtime.progress.slow_ranks import slow_ranks
from airflow_provider_sparkddp.runtime.training.callbacks.lines import Lines
from airflow_provider_sparkddp.runtime.training.callbacks.meter import Meter, Timed
from airflow_provider_sparkddp.runtime.training.lightning_names import callback
from airflow_provider_sparkddp.spec.errors import SparkDDPError


class _Recorder:
    """The callback's body; the base class comes from the Trainer's own package.

    Attributes:
        history: one dict an epoch: epoch, step, loss (mean over all ranks' rows), metrics, rows_per_second, seconds.
        logged: every logged metric, as rank 0 saw it; empty on the other ranks.
        first_step_at: Unix time of the first training batch.
    """

    def __init__(self, info: RankInfo, channel: Channel) -> None:
        super().__init__()
        self.info, self.channel = info, channel
        self.meter, self.lines, self.logged = Meter(), Lines(channel), History()
        self.history: list[dict[str, Any]] = []
        self.first_step_at: float | None = None
        self.train_seconds, self.all_rows, self.all_steps = 0.0, 0, 0
        self._latest: dict[str, Any] = {}
        self._kept_at = 0
        self._named_slow: set[str] = set()
        self.skips_nan = False  # on_nan="skip": such a loss is left out of the mean
        self._begin_epoch()

    def loader(self, loader: Any) -> Timed:
        """The training loader, with what is waited for it counted."""
        return self.meter.loader(loader)

    def _begin_epoch(self) -> None:
        self.loss_sum: Any = 0.0
        self.loss_rows = self.rows = self.steps = 0
        self.epoch_started = time.monotonic()

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self.lines.begin(trainer)
        self.meter.begin(module.device, trainer.num_training_batches)
        # On the object alone; its class keeps its own.
        module.training_step = self.meter.step(module.training_step)

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        self._begin_epoch()

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        if self.first_step_at is None:
            self.first_step_at = time.time()

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        rows, loss = rows_in(batch), outputs.get("loss") if isinstance(outputs, dict) else outputs
        self.rows, self.steps = self.rows + rows, self.steps + 1
        if self.skips_nan and loss is not None and not math.isfinite(loss):
            loss = None
        if loss is not None:
            # None under manual optimisation: what its step returns is its own affair.
            loss = loss.detach().float()
            if loss.device.type == "cpu":
                # On CUDA this would wait for the device at every step; there the epoch's end finds it.
                self._stop_on_nan(float(loss), trainer)
            self.loss_sum, self.loss_rows = self.loss_sum + loss * rows, self.loss_rows + rows
        every, step = trainer.log_every_n_steps, trainer.global_step
        # A batch may make no step (accumulated gradients), or several (more than one optimiser).
        if every and step // every > self._kept_at // every:
            self._kept_at = step
            self._keep_logged(trainer)
        if self.info.rank == 0 and self.lines.due():
            # The steps of the ranks are equal in number and nearly in rows.
            pace = self.rows * self.info.world_size / max(time.monotonic() - self.epoch_started, 1e-9)
            self.lines.within_epoch(trainer, self.steps, {} if loss is None else {"loss": float(loss)}, pace)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if not trainer.sanity_checking:
            self._keep_logged(trainer)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        seconds = max(time.monotonic() - self.epoch_started, 1e-9)
        self.train_seconds += seconds
        self.all_rows, self.all_steps = self.all_rows + self.rows, self.all_steps + self.steps
        loss, rows = self._join(module)
        if loss is not None:
            self._stop_on_nan(loss, trainer)
        self._keep_logged(trainer)
        entry = {
            "epoch": trainer.current_epoch,
            "step": trainer.global_step,
            "loss": loss,
            "metrics": numbers(trainer.callback_metrics),
            "rows_per_second": round(rows / seconds, 1),
            "seconds": round(seconds, 3),
        }
        self.history.append(entry)
        if self.info.rank == 0:
            if loss is not None and "loss" not in self._latest:
                self.logged.add(trainer.global_step, trainer.current_epoch, "loss", loss)
            self.logged.settle()
            told = {"loss": loss, **entry["metrics"]}
            self.lines.epoch(trainer, self.steps, told, entry["rows_per_second"])

    def on_train_end(self, trainer: Any, module: Any) -> None:
        _release(module)
        self.lines.end()

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        _release(module)

    def _join(self, module: Any) -> tuple[float | None, float]:
        """The mean loss over the rows of all ranks (None when no rank told one) and their rows, of this epoch.

        A collective: every rank comes here. It also carries the seconds of each rank's own work.
        """
        import torch
        import torch.distributed as dist

        size, kind = self.info.world_size, torch.float32 if module.device.type == "mps" else torch.float64
        sums = [torch.as_tensor(each) for each in (self.loss_sum, self.loss_rows, self.rows)]
        own = torch.zeros(2, size, dtype=kind)
        own[:, self.info.rank] = torch.tensor([self.meter.data_seconds, self.meter.step_seconds])
        total = torch.cat(
            [torch.stack([each.to(module.device, kind) for each in sums]), own.flatten().to(module.device)]
        )
        dist.all_reduce(total)
        loss_sum, loss_rows, rows, *seconds = total.tolist()
        self._warn_if_slow(seconds[:size], seconds[size:])
        return loss_sum / loss_rows if loss_rows else None, rows

    def _warn_if_slow(self, data: list[float], compute: list[float]) -> None:
        for slow in slow_ranks(data, compute, self.train_seconds):
            if slow.rank == self.info.rank and slow.at not in self._named_slow:
                self._named_slow.add(slow.at)
                self.channel.notice("warning", f"this rank is {slow}")

    def _keep_logged(self, trainer: Any) -> None:
        """What was logged since the last look; what Lightning keeps of earlier lies in the memory that it had then."""
        logged = trainer.callback_metrics  # a collective may be behind it: on every rank
        for name, value in logged.items() if self.info.rank == 0 else ():
            before = self._latest.get(name)
            # A metric of steps and of epochs stands there under both names and its own.
            double = f"{name}_step" in logged or f"{name}_epoch" in logged
            if double or value.numel() != 1 or (before is not None and before.data_ptr() == value.data_ptr()):
                continue
            self._latest[name] = value
            self.logged.add(trainer.global_step, trainer.current_epoch, name, value)

    def _stop_on_nan(self, loss: float, trainer: Any) -> None:
        if not math.isfinite(loss):
            raise SparkDDPError(
                "SDDP-406",
                f"the loss is {loss} on rank {self.info.rank} at epoch {trainer.current_epoch}, step {trainer.global_step}.",
                "Lower the learning rate, clip gradients (trainer={'gradient_clip_val': …}), or scale the features.",
            )

    def figures(self) -> dict[str, Any]:
        """This rank's, for its report."""
        seconds = max(self.train_seconds, 1e-9)
        return {
            "trained_steps": self.all_steps,
            "train_seconds": round(self.train_seconds, 3),
            "rows_per_second": round(self.all_rows / seconds, 1),
            "data_seconds": round(self.meter.data_seconds, 3),
            "data_wait": round(self.meter.data_seconds / seconds, 4),
            "step_seconds": round(self.meter.step_seconds, 3),
            **self.meter.memory(),
        }


def _release(module: Any) -> None:
    vars(module).pop("training_step", None)


def rows_in(batch: Any) -> int:
    """Rows of a batch: of its first part, or of itself; 0 where that has no length."""
    first: Any = next(iter(batch.values()), None) if isinstance(batch, Mapping) else batch
    if isinstance(first, (tuple, list)) and first:
        first = first[0]
    return len(first) if getattr(first, "ndim", 1) and hasattr(first, "__len__") else 0


def numbers(metrics: Any) -> dict[str, float | None]:
    """Single values as plain numbers; None for NaN and infinities, which aren't JSON."""
    single = {name: float(value) for name, value in metrics.items() if getattr(value, "numel", lambda: 1)() == 1}
    return {name: value if math.isfinite(value) else None for name, value in single.items()}


def recorder(package: str, info: RankInfo, channel: Channel) -> Any:
    """A Callback of the given Trainer's package."""
    return callback(package, _Recorder, info, channel)

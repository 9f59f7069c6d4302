"""What happens to a loss or gradient that is NaN or infinite: the training stops, or all ranks skip the step alike."""

from __future__ import annotations

import logging
import time
from typing import Any

from airflow_provider_sparkddp.spec.errors import SparkDDPError

LOG = logging.getLogger(__name__)
SECONDS_BETWEEN_LINES = 10.0
REMEDY = "Lower the learning rate, clip gradients (trainer={'gradient_clip_val': …}), or scale the features."


class StopOnNan:
    """Sees each loss before its backward, with manual optimisation and accumulation too."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.first_bad: Any = None  # on a CUDA device: the first step with such a loss

    def on_before_backward(self, trainer: Any, module: Any, loss: Any) -> None:
        import torch

        if trainer.scaler is not None:
            return  # a scaled loss may overflow; the scaler skips such a step and lowers the scale
        if loss.device.type == "cpu":
            if not bool(torch.isfinite(loss).all()):
                self._stop(trainer, float(loss.detach().sum()), trainer.global_step)
            return
        # To look at a loss is to wait for the device: once in a while is enough.
        step = torch.where(torch.isfinite(loss).all(), torch.inf, float(trainer.global_step))
        self.first_bad = step if self.first_bad is None else torch.minimum(self.first_bad, step)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.first_bad is not None and (batch_idx + 1) % max(trainer.log_every_n_steps, 1) == 0:
            self._look(trainer)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        if self.first_bad is not None:
            self._look(trainer)

    def _look(self, trainer: Any) -> None:
        first = float(self.first_bad)
        if first != float("inf"):
            self._stop(trainer, "NaN or infinite", int(first))

    def _stop(self, trainer: Any, loss: Any, step: int) -> None:
        where = f"on rank {self.rank} at epoch {trainer.current_epoch}, step {step}"
        raise SparkDDPError("SDDP-406", f"the loss is {loss} {where}.", REMEDY)


class SkipNan:
    """Leaves out a step that is bad on any rank.

    Under a GradScaler the scaler skips the step and lowers its scale; here it is counted.

    Attributes:
        skipped: optimizer steps that were left out so far.
    """

    def __init__(self) -> None:
        self.skipped = self.skipped_before = self.steps = 0
        self.bad: Any = False
        self.settled, self.told = False, float("-inf")
        self.buffers: list[Any] | None = None  # as they were before the step
        self.held: list[tuple[Any, str]] = []

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        self.skipped_before, self.steps = self.skipped, 0

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        if self.buffers is None:
            self.buffers = [buffer.detach().clone() for buffer in module.buffers()]

    def on_before_backward(self, trainer: Any, module: Any, loss: Any) -> None:
        import torch

        self.bad = self.bad | ~torch.isfinite(loss.detach()).all()

    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        """A collective: every rank takes the same steps."""
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        bad = self.bad if trainer.scaler is not None else self.bad | _any_bad(parameters)
        self.bad, self.steps = False, self.steps + 1
        if not _on_any_rank(bad, trainer.strategy.root_device):
            self.settled = True
            return
        self.skipped += 1
        for parameter in parameters if trainer.scaler is None else ():
            parameter.grad = None  # optimizers leave weight and state of such a parameter as they are
        for buffer, before in zip(module.buffers(), self.buffers or (), strict=True):
            buffer.detach().copy_(before)  # running statistics, for one
        self._hold_schedulers(trainer)
        self._tell(trainer)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        for config, interval in self.held:
            config.interval = interval
        self.held = []
        if self.settled:
            self.buffers, self.settled = None, False

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        skipped = self.skipped - self.skipped_before
        if skipped and skipped == self.steps:
            raise SparkDDPError(
                "SDDP-406",
                f"all {skipped} steps of epoch {trainer.current_epoch} were skipped: loss or gradient was NaN or infinite.",
                REMEDY,
            )

    def _hold_schedulers(self, trainer: Any) -> None:
        """A learning rate that changes at each step doesn't change at this one."""
        self.held += [(each, each.interval) for each in trainer.lr_scheduler_configs if each.interval == "step"]
        for config, _ in self.held:
            config.interval = "skipped"

    def _tell(self, trainer: Any) -> None:
        if trainer.is_global_zero and time.monotonic() - self.told >= SECONDS_BETWEEN_LINES:
            self.told = time.monotonic()
            where = f"epoch {trainer.current_epoch}, step {trainer.global_step}"
            LOG.warning("Skipped at %s: loss or gradient is NaN or infinite (%d so far)", where, self.skipped)


def _any_bad(parameters: Any) -> Any:
    import torch

    bad: Any = False
    for parameter in parameters:
        grad = parameter.grad
        grad = grad.to_local() if hasattr(grad, "to_local") else grad  # this rank's shard
        grad = grad.coalesce().values() if grad.is_sparse else grad
        bad = bad | ~torch.isfinite(grad).all()
    return bad


def _on_any_rank(bad: Any, device: Any) -> bool:
    import torch
    import torch.distributed as dist

    flag = torch.as_tensor(bad).to(device=device, dtype=torch.float32)
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return bool(flag)

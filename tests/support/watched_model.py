"""Modules that log, stumble or draw random numbers, each in one way: for tests of what keeps a training honest."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torchmetrics import MeanAbsoluteError

from tests.support.tiny_model import Line, Sharded


class Still(Line):
    """Its weights never change: what it logs is a function of the rows alone. Each rank leaves what it saw in a folder."""

    def __init__(self, folder: str, num_features: int = 2) -> None:
        super().__init__(num_features)
        self.folder = folder
        self.seen: dict[str, Any] = {}

    def errors(self, batch: Any) -> Any:
        x, y = batch
        return (self(x) - y).abs()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.0)

    def on_fit_end(self) -> None:
        self.seen["metrics"] = {name: float(value) for name, value in self.trainer.callback_metrics.items()}
        Path(f"{self.folder}/rank-{self.global_rank}-of-{self.trainer.world_size}.json").write_text(
            json.dumps(self.seen)
        )


class Logs(Still):
    """Logs in every way, without sync_dist."""

    def __init__(self, folder: str, num_features: int = 2) -> None:
        super().__init__(folder, num_features)
        self.mae = MeanAbsoluteError()
        self.trained: list[Any] = []
        self.validated: list[Any] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        errors = self.errors(batch)
        self.log("train", errors.mean(), on_step=False, on_epoch=True)
        self.log("train_both", errors.mean(), on_step=True, on_epoch=True, prog_bar=True)
        self.log("train_step", errors.mean())
        self.log("train_max_step", errors.max(), reduce_fx="max")
        self.log_dict(
            {"train_sum": errors.sum(), "also_sum": errors.sum()}, on_step=False, on_epoch=True, reduce_fx="sum"
        )
        if self.global_rank == 0:
            self.log("of_one_rank", errors.mean(), on_epoch=True)
            self.log("of_one_rank_said_so", errors.mean(), rank_zero_only=True)
        self.trained.append(errors.detach())
        return errors.mean()

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        # What the shared value of the step must be made of, and what is shown.
        errors, shown = self.trained[-1], self.trainer.callback_metrics.get("train_step")
        step = {"mean": float(errors.mean()), "max": float(errors.max()), "rows": len(errors)}
        self.seen.setdefault("steps", []).append(step | {"shown": None if shown is None else float(shown)})

    def on_train_epoch_end(self) -> None:
        self.log("train_end", torch.cat(self.trained).mean())
        self.trained = []

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        errors = self.errors(batch)
        self.log("val", errors.mean(), prog_bar=True)
        self.log("val_min", errors.min(), reduce_fx=min)
        self.log("val_max", errors.max(), reduce_fx="max")
        self.log("val_sum", errors.sum(), reduce_fx=torch.sum)
        self.log("val_synced", errors.mean(), sync_dist=True, batch_size=len(errors))
        self.mae(self(batch[0]), batch[1])
        self.log("val_torchmetrics", self.mae)
        self.validated.append(errors)

    def on_validation_epoch_end(self) -> None:
        self.log("val_end", torch.cat(self.validated).mean())
        self.validated = []


class OfOneRank(Still):
    """The watched metric is logged by rank 0 alone."""

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        if self.global_rank == 0:
            self.log("val_mae", self.errors(batch).mean())


class AtTheEnd(Still):
    """The watched metric is logged when it is too late to exchange it."""

    def on_train_epoch_end(self) -> None:
        self.log("train_mae", float(self.global_rank))


class Plateau(Line):
    """Its learning rate follows a metric that each rank logs for itself."""

    def __init__(self, folder: str, num_features: int = 2) -> None:
        super().__init__(num_features)
        self.folder = folder

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        # Alone, rank 0 would see it rise and rank 1 see it fall.
        self.log("val", float((self.current_epoch + 1) * (1 - 2 * self.global_rank)))

    def configure_optimizers(self) -> Any:
        optimizer = super().configure_optimizers()
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val"}}

    def on_fit_end(self) -> None:
        rate = self.trainer.optimizers[0].param_groups[0]["lr"]
        Path(f"{self.folder}/rank-{self.global_rank}.json").write_text(json.dumps(rate))


class NoisyRows(Line):
    """The loss of some steps is NaN on rank 1 alone; a learning rate that changes at each step; running statistics."""

    def __init__(self, bad: list[int], num_features: int = 2, folder: str = "", manual: bool = False) -> None:
        super().__init__(num_features)
        self.bad, self.folder = bad, folder
        self.automatic_optimization = not manual
        self.norm = nn.BatchNorm1d(num_features)
        self.states: list[Any] = []

    def forward(self, x: Any) -> Any:
        return super().forward(self.norm(x))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if self.trainer.world_size > 1 and self.global_rank == 1 and batch_idx in self.bad:
            batch = (batch[0] * float("nan"), batch[1])
        loss = super().training_step(batch, batch_idx)
        if self.automatic_optimization:
            return loss
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        return None

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        state = self.trainer.optimizers[0].state.values()
        tensors = [*self.parameters(), *self.buffers(), *(value for each in state for value in each.values())]
        rate = self.trainer.optimizers[0].param_groups[0]["lr"]
        self.states.append([rate, *(tensor.tolist() for tensor in tensors)])

    def on_fit_end(self) -> None:
        if self.folder:
            Path(f"{self.folder}/rank-{self.global_rank}.json").write_text(json.dumps(self.states))

    def configure_optimizers(self) -> Any:
        optimizer = super().configure_optimizers()
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


class InfiniteLoss(Line):
    """Infinite at the second batch of rank 1."""

    def __init__(self, manual: bool = False, num_features: int = 2) -> None:
        super().__init__(num_features)
        self.automatic_optimization = not manual

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = super().training_step(batch, batch_idx)
        loss = loss * float("inf") if self.global_rank == 1 and batch_idx == 1 else loss
        if self.automatic_optimization:
            return loss
        self.manual_backward(loss)
        self.optimizers().step()
        return None


class Worsens(Line):
    """Its validation metric is 3, 1, 2, 2, … by the epoch; its weights count the epochs."""

    values = (3.0, 1.0, 2.0)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        with torch.no_grad():
            self.layer.bias.fill_(float(self.current_epoch))
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val_mae", self.values[min(self.current_epoch, 2)])
        self.log("val_rows", float(len(batch[1])), reduce_fx="sum")

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.0)


class ShardedWorsens(Sharded, Worsens):
    """As Worsens, spread over the ranks."""


class ShardedNoisyRows(Sharded):
    """A NaN on rank 1 alone, in a model that is spread over the ranks."""

    def __init__(self, bad: list[int], num_features: int = 2) -> None:
        super().__init__(num_features)
        self.bad = bad

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = super().training_step(batch, batch_idx)
        return loss * float("nan") if self.global_rank == 1 and batch_idx in self.bad else loss


class Dropout(Line):
    """Draws random numbers in training and in validation; each rank leaves its first draws of each epoch."""

    def __init__(self, folder: str = "", noisy_validation: bool = True, num_features: int = 2) -> None:
        super().__init__(num_features)
        self.folder, self.noisy_validation = folder, noisy_validation
        self.drop = nn.Dropout(0.5)
        self.draws: list[Any] = []

    def forward(self, x: Any) -> Any:
        return super().forward(self.drop(x))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if batch_idx == 0:
            self.draws.append([random.random(), np.random.rand(), float(torch.rand(1))])
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        if self.noisy_validation:
            random.random(), np.random.rand(), torch.rand(3)
        super().validation_step(batch, batch_idx)

    def on_fit_end(self) -> None:
        if self.folder:
            found = {"draws": self.draws, "weights": [p.tolist() for p in self.parameters()]}
            Path(f"{self.folder}/rank-{self.global_rank}.json").write_text(json.dumps(found))


class Unused(Line):
    """A head that the loss doesn't reach: never, or from some step on."""

    def __init__(self, since: int = 0, manual: bool = False, num_features: int = 2) -> None:
        super().__init__(num_features)
        self.automatic_optimization = not manual
        self.head = nn.ModuleDict({"other": nn.Linear(num_features, 1)})
        self.since = since

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = super().training_step(batch, batch_idx)
        loss = loss if batch_idx >= self.since else loss + 0 * self.head["other"](batch[0]).sum()
        if self.automatic_optimization:
            return loss
        self.manual_backward(loss)
        self.optimizers().step()
        return None


class NoLoss(Line):
    """Returns None on rank 1 at the second batch."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if self.global_rank == 1 and batch_idx == 1:
            return None
        return super().training_step(batch, batch_idx)


class NoOptimizer(Line):
    def configure_optimizers(self) -> Any:
        return None


class Prepares(Line):
    """Leaves a file for each rank that prepares data."""

    def __init__(self, folder: str, per_node: bool = True, num_features: int = 2) -> None:
        super().__init__(num_features)
        self.folder = folder
        self.prepare_data_per_node = per_node

    def prepare_data(self) -> None:
        (Path(self.folder) / f"prepared-by-{self.trainer.global_rank}").touch()

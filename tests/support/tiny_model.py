"""Small Lightning modules for tests of training."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor


class Line(pl.LightningModule):
    """y = w x + b."""

    def __init__(self, num_features: int = 2, learning_rate: float = 0.1) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = nn.Linear(num_features, 1)
        self.learning_rate = learning_rate

    def forward(self, x: Any) -> Any:
        return self.layer(x).squeeze(-1)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        return nn.functional.mse_loss(self(x), y)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        self.log("val_mae", (self(x) - y).abs().mean(), sync_dist=True, batch_size=len(y))

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate)


class RowRecorder(Line):
    """Writes the rows that each rank saw (the first feature of each) to a folder."""

    def __init__(self, folder: str, num_features: int = 1) -> None:
        super().__init__(num_features)
        self.folder = folder
        self.seen: list[list[float]] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.seen.append(batch[0][:, 0].tolist())
        return super().training_step(batch, batch_idx)

    def on_train_epoch_end(self) -> None:
        torch.save(self.seen, f"{self.folder}/rank-{self.global_rank}-epoch-{self.current_epoch}.pt")
        self.seen = []


class Nan(Line):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return super().training_step(batch, batch_idx) * float("nan")


class Column(Line):
    """Returns (rows, 1): against y of (rows,) a loss would broadcast to rows x rows."""

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class Raises(Line):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if self.global_rank == 1 and batch_idx == 1:
            raise RuntimeError("a fault in the user's own step")
        return super().training_step(batch, batch_idx)


class RaisesLater(Line):
    """Its second epoch fails on every rank."""

    def on_train_epoch_start(self) -> None:
        if self.current_epoch == 1:
            raise RuntimeError("a fault in the second epoch")


class Begins(Line):
    """Writes with which weights and random numbers a rank's training begins to a folder; the last beginning is what stays."""

    def __init__(self, folder: str, num_features: int = 2, learning_rate: float = 0.1) -> None:
        super().__init__(num_features, learning_rate)
        self.folder = folder

    def on_train_start(self) -> None:
        begins = {"weights": self.layer.weight.detach().clone(), "random": torch.get_rng_state()}
        torch.save(begins, f"{self.folder}/rank-{self.global_rank}.pt")


class Waits(Line):
    """Rank 0 says through a named pipe that it trains, then all go on slowly: for tests that kill."""

    def __init__(self, pipe: str, num_features: int = 2) -> None:
        super().__init__(num_features)
        self.pipe = pipe

    def on_train_start(self) -> None:
        if self.global_rank == 0:
            # Blocks until the test reads.
            Path(self.pipe).write_text(str(os.getpid()))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        threading.Event().wait(1)
        return super().training_step(batch, batch_idx)


class Manual(Line):
    """Steps its optimiser itself and returns nothing."""

    def __init__(self, num_features: int = 2) -> None:
        super().__init__(num_features)
        self.automatic_optimization = False

    def training_step(self, batch: Any, batch_idx: int) -> None:
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(super().training_step(batch, batch_idx))
        optimizer.step()


class Sharded(Line):
    """Two layers, each spread over the ranks by FSDP2."""

    def __init__(self, num_features: int = 2, learning_rate: float = 0.1) -> None:
        super().__init__(num_features, learning_rate)
        self.first = nn.Linear(num_features, num_features)

    def forward(self, x: Any) -> Any:
        return super().forward(self.first(x))

    def configure_model(self) -> None:
        mesh = self.device_mesh["data_parallel"]
        for part in (self.first, self.layer, self):
            fully_shard(part, mesh=mesh)

    def on_train_start(self) -> None:
        assert isinstance(self.layer.weight, DTensor), "nothing was sharded"


class Late(Line):
    """Its layer is built in configure_model, and sharded where there is a mesh."""

    def __init__(self, num_features: int = 2, learning_rate: float = 0.1) -> None:
        super().__init__(num_features, learning_rate)
        del self.layer
        self.num_features = num_features

    def configure_model(self) -> None:
        self.layer = nn.Linear(self.num_features, 1)
        if self.device_mesh is not None:
            fully_shard(self.layer, mesh=self.device_mesh["data_parallel"])


class NeedsMesh(Late):
    def configure_model(self) -> None:
        self.layer = fully_shard(nn.Linear(self.num_features, 1), mesh=self.device_mesh["data_parallel"])


class NotAModule:
    pass


def make_line(num_features: int = 2) -> Line:
    return Line(num_features)

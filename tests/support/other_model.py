"""A module of the other Lightning package."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import torch
from torch import nn


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

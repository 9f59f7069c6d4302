"""The users' code of these DAGs: a source and modules, beside the DAG file, with everyday names."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytorch_lightning as pl
import torch
from torch import nn


def require_no_secrets() -> None:
    """Airflow's settings and connections are none of a model's business."""
    found = [name for name in os.environ if name.startswith(("AIRFLOW__", "AIRFLOW_CONN_", "__AIRFLOW"))]
    if found:
        raise RuntimeError(f"this process was given {found}")


class Line(pl.LightningModule):
    def __init__(self, learning_rate: float = 0.1, bias: bool = True) -> None:
        super().__init__()
        require_no_secrets()
        self.layer = nn.Linear(2, 1, bias=bias)
        self.learning_rate = learning_rate

    def forward(self, x: Any) -> Any:
        return self.layer(x).squeeze(-1)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        return nn.functional.mse_loss(self(x), y)

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate)


class Stumbles(Line):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if self.global_rank == 1:
            raise RuntimeError("rank one stumbled over its own step")
        return super().training_step(batch, batch_idx)


def rows(spark: Any, count: int = 400) -> Any:
    require_no_secrets()
    return spark.sql(
        f"SELECT a, b, 2 * a - b AS y, s FROM (SELECT rand(1) AS a, rand(2) AS b, string(id) AS s FROM range({count}))"
    )


def never(spark: Any) -> Any:
    threading.Event().wait()

"""One step that does next to nothing, as the ranks of a launch take it. Imported by name on the executors."""

from __future__ import annotations

import os
import time
from typing import Any


def ours(info: Any, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """A rank function for `runtime.barrier.launch`: joins the group and sums a one. `at`: Unix time of the step; `pid` of the rank."""
    import torch
    import torch.distributed as dist

    from airflow_provider_sparkddp.runtime.barrier.rendezvous import rank_environment
    from airflow_provider_sparkddp.runtime.training.group import process_group
    from airflow_provider_sparkddp.runtime.training.isolation import isolated

    with isolated(rank_environment(info), info.threads), process_group(info, store, "gloo"):
        one = torch.ones(1)
        dist.all_reduce(one)
        return {"sum": float(one), "at": time.time(), "pid": os.getpid()}


def torchs() -> dict[str, Any]:
    """The same for TorchDistributor, which has set the environment that torch reads."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    try:
        one = torch.ones(1)
        dist.all_reduce(one)
        return {"sum": float(one), "at": time.time()}
    finally:
        dist.destroy_process_group()


def line() -> Any:
    """A Lightning module of one layer, y = w x + b."""
    import pytorch_lightning
    import torch

    class Line(pytorch_lightning.LightningModule):  # type: ignore[misc]  # imported here, it has no type
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x: Any) -> Any:
            return self.layer(x).squeeze(-1)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return torch.nn.functional.mse_loss(self(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Line()

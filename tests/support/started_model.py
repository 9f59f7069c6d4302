"""Modules that write down, on every rank, the weights with which their training begins; they learn nothing."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.tensor import DTensor

from tests.support.tiny_model import Line, Sharded


class _Tells:
    folder: str
    global_rank: int

    def on_train_start(self) -> None:
        state = {
            name: tensor.full_tensor() if isinstance(tensor, DTensor) else tensor.clone()
            for name, tensor in self.state_dict().items()  # type: ignore[attr-defined]
        }
        torch.save(state, f"{self.folder}/rank-{self.global_rank}.pt")


class Told(_Tells, Line):
    def __init__(self, folder: str) -> None:
        super().__init__(2, 0.0)
        self.folder = folder


class ToldSharded(_Tells, Sharded):
    """Its layers are sharded by FSDP2 before the weights come."""

    def __init__(self, folder: str) -> None:
        super().__init__(2, 0.0)
        self.folder = folder

    def on_train_start(self) -> Any:
        assert isinstance(self.layer.weight, DTensor), "nothing was sharded"
        return _Tells.on_train_start(self)

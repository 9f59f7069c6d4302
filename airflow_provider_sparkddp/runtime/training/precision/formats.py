"""Lightning's precision names, and the format of the inputs that go with each."""

from __future__ import annotations

from typing import Any

from airflow_provider_sparkddp.spec.seams import normal


def build(requested: Any) -> str:
    """The full name for Trainer(precision=…)."""
    return str(normal("precision", requested))


def input_dtype(precision: str) -> Any:
    """The dtype that batches are made in; Lightning converts floats further where the precision says so."""
    import torch

    return torch.float64 if precision == "64-true" else torch.float32

"""Distributed data parallel: gradients are averaged over the ranks at each step."""

from __future__ import annotations

import importlib
from datetime import timedelta
from typing import Any


class _ExactMeans:
    """Lightning truncates an integer's mean over ranks, as the row counts of logged metrics are (its issue 21859)."""

    def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
        if isinstance(reduce_op, str) and reduce_op.lower() in ("mean", "avg") and not tensor.is_floating_point():
            tensor = tensor.double()
        return super().reduce(tensor, group, reduce_op)  # type: ignore[misc]  # the strategy's, mixed in below


BACKENDS = {"cpu": "gloo", "cuda": "nccl"}


def build(package: str, name: str, environment: Any, accelerator: str, timeout: timedelta) -> Any:
    """Lightning's DDPStrategy of the given Trainer's package.

    Args:
        name: auto, ddp or ddp_find_unused_parameters_true.
    """
    base = importlib.import_module(f"{package}.strategies").DDPStrategy
    strategy = type("SparkDDPStrategy", (_ExactMeans, base), {})
    return strategy(
        cluster_environment=environment,
        process_group_backend=BACKENDS[accelerator],
        timeout=timeout,
        find_unused_parameters=name == "ddp_find_unused_parameters_true",
    )

"""Distributed data parallel: gradients are averaged over the ranks at each step."""

from __future__ import annotations

import importlib
from datetime import timedelta
from typing import Any

BACKENDS = {"cpu": "gloo", "cuda": "nccl"}


def build(package: str, name: str, environment: Any, accelerator: str, timeout: timedelta) -> Any:
    """Lightning's DDPStrategy of the given Trainer's package.

    Args:
        name: auto, ddp or ddp_find_unused_parameters_true.
    """
    strategies = importlib.import_module(f"{package}.strategies")
    return strategies.DDPStrategy(
        cluster_environment=environment,
        process_group_backend=BACKENDS[accelerator],
        timeout=timeout,
        find_unused_parameters=name == "ddp_find_unused_parameters_true",
    )

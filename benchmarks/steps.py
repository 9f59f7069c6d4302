"""One step that does next to nothing, as the ranks of a launch take it. Imported by name on the executors."""

from __future__ import annotations

import time
from typing import Any


def ours(info: Any, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """A rank function for `runtime.barrier.launch`: joins the group and sums a one. `at`: Unix time of the step."""
    import torch
    import torch.distributed as dist

    from airflow_provider_sparkddp.runtime.barrier.rendezvous import rank_environment
    from airflow_provider_sparkddp.runtime.training.group import process_group
    from airflow_provider_sparkddp.runtime.training.isolation import isolated

    with isolated(rank_environment(info), info.threads), process_group(info, store, "gloo"):
        one = torch.ones(1)
        dist.all_reduce(one)
        return {"sum": float(one), "at": time.time()}


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

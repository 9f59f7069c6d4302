"""What ranks run in the barrier tests: small functions of (rank info, store, settings)."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.barrier.rendezvous import rank_environment
from airflow_provider_sparkddp.runtime.training.group import process_group
from airflow_provider_sparkddp.runtime.training.isolation import isolated


def all_reduce(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """A one from each rank, summed over gloo."""
    with isolated(rank_environment(info), info.threads), process_group(info, store, "gloo"):
        one = torch.ones(1)
        dist.all_reduce(one)
        return {
            "rank": info.rank,
            "sum": float(one),
            "pid": os.getpid(),
            "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
            "host": info.host,
            "interface": info.interface,
            "local_rank": info.local_rank,
            "node_rank": info.node_rank,
            "threads": info.threads,
            "leader": [info.main_address, info.main_port],
        }


def without_interface(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """As `all_reduce`, with the interface left to Gloo: what would happen without our setting."""
    environment = {key: value for key, value in rank_environment(info).items() if "SOCKET_IFNAME" not in key}
    with isolated(environment, info.threads), process_group(info, store, "gloo", timedelta(seconds=10)):
        dist.all_reduce(torch.ones(1))
    return {"rank": info.rank}


def environment_after(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """What an earlier training in this Python worker left behind."""
    return {
        "rank": info.rank,
        "pid": os.getpid(),
        "master_port": os.environ.get("MASTER_PORT"),
        "world_size": os.environ.get("WORLD_SIZE"),
        "seed": os.environ.get("PL_GLOBAL_SEED"),
        "group": dist.is_initialized(),
        "threads": torch.get_num_threads(),
    }


def rank_one_raises(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Rank 1 fails while its peers wait in a collective."""
    with isolated(rank_environment(info), info.threads), process_group(info, store, "gloo"):
        if info.rank == 1:
            raise ValueError("the shoe is on the wrong foot")
        dist.all_reduce(torch.ones(1))
        dist.all_reduce(torch.ones(1))
    return {"rank": info.rank}


def rank_one_is_killed(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Rank 1 ends without a word while its peers wait in a collective."""
    with isolated(rank_environment(info), info.threads), process_group(info, store, "gloo"):
        if info.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(torch.ones(1))
        dist.all_reduce(torch.ones(1))
    return {"rank": info.rank}


def task_of_rank_one_is_killed(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Rank 1 kills the Python worker whose process it is, and waits with its peers in a collective."""
    (Path(settings["folder"]) / f"pid-{info.rank}").write_text(str(os.getpid()))
    with isolated(rank_environment(info), info.threads), process_group(info, store, "gloo"):
        dist.all_reduce(torch.ones(1))
        if info.rank == 1:
            os.kill(os.getppid(), signal.SIGKILL)
        threading.Event().wait(60)
    return {"rank": info.rank}


def exits(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Rank 3 ends its process as native code may."""
    if info.rank == 3:
        os._exit(7)
    with isolated(rank_environment(info), info.threads), process_group(info, store, "gloo"):
        dist.all_reduce(torch.ones(1))
    return {"rank": info.rank}

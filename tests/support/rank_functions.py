"""What ranks run in the barrier tests: small functions of (rank info, store, settings)."""

from __future__ import annotations

import gc
import json
import logging
import os
import random
import signal
import sys
import threading
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
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


def all_reduce_where_devices_are_set(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """As on an executor whose own environment names GPUs."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "7"
    return all_reduce(info, store, settings)


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


def pid(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    return {"pid": os.getpid()}


def as_after_cuda(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """torch says what it says once CUDA was used; that it is so of a real GPU is tests/gpu's to show."""
    torch.cuda._initialized = True
    return {"pid": os.getpid()}


def leaves_a_process_behind(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """A forked process has all that the rank has open."""
    left = os.fork()
    if left == 0:
        signal.pause()
        os._exit(0)
    return {"left": left}


def train_and_look(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """A real training, with what the process holds before and after it, left beside the model."""
    # Once in a process Lightning sets up its loggers and handlers, as all libraries do when they are imported.
    import pytorch_lightning  # noqa: F401

    from airflow_provider_sparkddp.runtime.training.rank import train_rank

    before = process_state()
    report = train_rank(info, store, settings)
    left = {"pid": os.getpid(), "before": before, "after": process_state()}
    folder = Path(settings["model_folder"].removeprefix("file://")).parent
    (folder / f"left-{info.rank}.json").write_text(json.dumps(left))
    return report


def process_state() -> dict[str, Any]:
    """What another job would find in this process, as plain JSON."""
    from lightning_utilities.core.rank_zero import rank_zero_only

    gc.collect()
    links = [
        each.readlink() if each.is_symlink() else each for each in Path("/proc/self/fd").iterdir() if each.exists()
    ]
    loggers = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    return {
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "process group": dist.is_initialized(),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "torch threads": torch.get_num_threads(),
        "signals": {str(number): repr(signal.getsignal(number)) for number in signal.valid_signals()},
        "excepthook": repr(sys.excepthook),
        "random": repr(random.getstate()),
        "numpy": repr(np.random.get_state()),
        "torch": torch.get_rng_state().tolist(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "dtype": str(torch.get_default_dtype()),
        "cudnn": [torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic],
        "loggers": {each.name: [each.level, len(each.handlers), each.propagate] for each in (logging.root, *loggers)},
        "warnings": repr(warnings.filters),
        "lightning's rank": rank_zero_only.rank,
        "sockets": sum("socket:" in str(each) for each in links),
        "children": Path(f"/proc/self/task/{os.getpid()}/children").read_text(),
    }

"""The process group, as a context: made on the store that the ranks met at, always destroyed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo

# torch's default of 30 minutes is how long peers would wait for a rank that hangs.
TIMEOUT = timedelta(minutes=5)


@contextmanager
def process_group(info: RankInfo, store: Any, backend: str, timeout: timedelta = TIMEOUT) -> Iterator[None]:
    """Joins the ranks. Lightning finds the group and uses it.

    A group that is left over in a reused Python worker is an error: the next training would use it, with ranks of its own.
    """
    import torch.distributed as dist

    if dist.is_initialized():
        raise RuntimeError("a process group of an earlier training is still there in this Python worker")
    dist.init_process_group(backend, store=store, rank=info.rank, world_size=info.world_size, timeout=timeout)
    try:
        yield
    finally:
        dist.destroy_process_group()

"""Lightning in barrier code of one's own: the ClusterEnvironment alone, without a job of ours. Needs no Airflow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.barrier.rendezvous import Cores, meet, rank_environment
from airflow_provider_sparkddp.runtime.training.environment import barrier_environment, not_sparks_ranks
from airflow_provider_sparkddp.runtime.training.group import TIMEOUT, process_group
from airflow_provider_sparkddp.runtime.training.isolation import isolated
from airflow_provider_sparkddp.spec.errors import SparkDDPError


@contextmanager
def spark_environment(
    trainer: type, *, backend: str | None = None, threads: int | None = None, timeout: timedelta = TIMEOUT
) -> Iterator[Any]:
    """Inside a barrier task (`df.mapInArrow(fn, schema, barrier=True)`), one rank a task: a ClusterEnvironment for the Trainer.

        with spark_environment(Trainer) as environment:
            trainer = Trainer(
                plugins=[environment], num_nodes=environment.world_size(), devices=1, accelerator="cpu", strategy="ddp"
            )

    The tasks meet, the environment variables of a rank are set, and the process group is made on the store that they met at; on
    leaving, all is put back, so that Spark may reuse the Python worker. `environment.info` tells rank, host and GPUs.

    Args:
        trainer: the Trainer class (or Fabric) of the Lightning package that is used: `lightning` and `pytorch_lightning` are the same
            code under two names, and don't take each other's plugins.
        backend: torch's collectives; default nccl where Spark gave this task GPUs that torch can use, else gloo.
        threads: CPU threads of this rank; default `spark.task.cpus`.
        timeout: how long a rank waits for its peers in a collective.

    Raises:
        SparkDDPError: SDDP-414 outside of a barrier task, when the Trainer's ranks are not Spark's tasks, or when none used it;
            SDDP-101 when `trainer` is no class of Lightning's; SDDP-307 when CUDA_VISIBLE_DEVICES contradicts Spark.
    """
    package, context = _package(trainer), _barrier_context()
    cpus = max(1, int(context.cpus()))
    info, store = meet(context, Cores(per_executor=cpus, per_task=cpus, threads_per_rank=threads))
    with isolated(rank_environment(info), info.threads), process_group(info, store, backend or _backend(info), timeout):
        environment = barrier_environment(package, info)
        yield environment
        if info.world_size > 1 and not environment.used:
            raise not_sparks_ranks(
                f"no Trainer used the environment: each of Spark's {info.world_size} tasks ran for itself"
            )


def _package(trainer: type) -> str:
    for cls in getattr(trainer, "__mro__", ()):
        root = cls.__module__.partition(".")[0]
        if root in ("lightning", "pytorch_lightning", "lightning_fabric"):
            return "lightning.pytorch" if root == "lightning" else "pytorch_lightning"
    raise SparkDDPError(
        "SDDP-101", f"spark_environment was given {trainer!r}.", "Give the class Trainer of the Lightning that you use."
    )


def _barrier_context() -> Any:
    from pyspark import BarrierTaskContext, TaskContext

    context = TaskContext.get()
    if not isinstance(context, BarrierTaskContext):
        raise SparkDDPError(
            "SDDP-414",
            "spark_environment is used outside of a barrier task.",
            "Use it inside of the function that is given to df.mapInArrow(fn, schema, barrier=True), or to an RDD's barrier().",
        )
    return context


def _backend(info: RankInfo) -> str:
    import torch

    return "nccl" if info.gpus and torch.cuda.is_available() else "gloo"

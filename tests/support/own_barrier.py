"""Functions of barrier tasks as a user writes them, for tests of the ClusterEnvironment alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

from airflow_provider_sparkddp.runtime.training import spark_environment
from tests.support import other_model, tiny_model

SCHEMA = "rank long, report string"
MODULES: dict[str, Any] = {"pytorch_lightning": tiny_model.Line, "lightning.pytorch": other_model.Line}


def tasks(report: Callable[[], dict[str, Any]]) -> Any:
    """The function for mapInArrow that runs the report in each task."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        for _ in batches:
            pass
        context = TaskContext.get()
        assert context is not None
        told = json.dumps(report())
        yield pa.RecordBatch.from_pydict({"rank": [context.partitionId()], "report": [told]})

    return run


def run(spark: Any, report: Callable[[], dict[str, Any]], world_size: int = 2, barrier: bool = True) -> list[Any]:
    rows = spark.range(0, world_size, 1, world_size).mapInArrow(tasks(report), SCHEMA, barrier=barrier).collect()
    return [json.loads(row["report"]) for row in sorted(rows, key=lambda row: int(row["rank"]))]


def trained(package: str, num_nodes: int | None = None, **arguments: Any) -> dict[str, Any]:
    """A training of one epoch; what it saw, and what it left."""
    import importlib

    import torch

    trainer_class = importlib.import_module(package).Trainer
    module: Any = MODULES[package]()
    before = {"environment": dict(os.environ), "threads": torch.get_num_threads()}
    given = {"accelerator": "cpu", "strategy": "ddp", "devices": 1, "max_epochs": 1, **arguments}
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "use_distributed_sampler": False,
    }
    with spark_environment(trainer_class) as environment:
        world_size = environment.world_size()
        rank = environment.global_rank()
        trainer = trainer_class(plugins=[environment], num_nodes=num_nodes or world_size, **given, **quiet)
        rows = TensorDataset(torch.full((6, 2), float(rank + 1)), torch.zeros(6))
        trainer.fit(module, DataLoader(rows, batch_size=2))
        seen = [trainer.global_rank, trainer.world_size, dist.get_rank(), dist.get_world_size(), os.environ["RANK"]]
    after = {"environment": dict(os.environ), "threads": torch.get_num_threads()}
    return {
        "pid": os.getpid(),
        "seen": seen,
        "weights": module.layer.weight.flatten().tolist(),
        "restored": before == after,
        "group": dist.is_initialized(),
    }


def alone(package: str) -> dict[str, Any]:
    """A Trainer that knows nothing of the other tasks."""
    return trained(package, num_nodes=1, strategy="auto")

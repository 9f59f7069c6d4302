"""Who am I: RankInfo as Lightning asks for it. Lightning counts each rank as a node with one device; it starts no process."""

from __future__ import annotations

import importlib
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.spec.errors import SparkDDPError

# Trainer's package -> where its Fabric keeps the base class
_FABRIC = {"pytorch_lightning": "lightning_fabric", "lightning.pytorch": "lightning.fabric"}


class _FromRankInfo:
    """The methods of Lightning's ClusterEnvironment, answered by a RankInfo alone."""

    def __init__(self, info: RankInfo) -> None:
        super().__init__()
        self.info = info
        # Whether a strategy that joins ranks asked.
        self.used = False

    @property
    def creates_processes_externally(self) -> bool:
        return True

    @property
    def main_address(self) -> str:
        return self.info.main_address

    @property
    def main_port(self) -> int:
        return self.info.main_port

    @staticmethod
    def detect() -> bool:
        return False  # chosen by hand, never guessed from the environment

    def world_size(self) -> int:
        return self.info.world_size

    def set_world_size(self, size: int) -> None:
        self.used = True
        if size != self.info.world_size:
            raise not_sparks_ranks(
                f"the Trainer has num_nodes x devices = {size} ranks, and Spark started {self.info.world_size} tasks, one a rank"
            )

    def global_rank(self) -> int:
        return self.info.rank

    def set_global_rank(self, rank: int) -> None:
        if rank != self.info.rank:
            raise not_sparks_ranks(
                f"the Trainer counts Spark's task {self.info.rank} as rank {rank}, so devices isn't 1"
            )

    def local_rank(self) -> int:
        # Lightning indexes its list of devices by it, and each task has one. The place on the host is info.local_rank.
        return 0

    def node_rank(self) -> int:
        return self.info.rank


def not_sparks_ranks(what: str) -> SparkDDPError:
    """Raised before the first collective, which would wait for ranks that don't exist."""
    return SparkDDPError(
        "SDDP-414",
        f"{what}.",
        "Give the Trainer num_nodes=environment.world_size(), devices=1 and a strategy that joins ranks, such as 'ddp'.",
    )


def barrier_environment(package: str, info: RankInfo) -> Any:
    """A ClusterEnvironment of the given Trainer's package (`pytorch_lightning` or `lightning.pytorch`)."""
    base = importlib.import_module(f"{_FABRIC[package]}.plugins.environments").ClusterEnvironment
    return type("SparkBarrierEnvironment", (_FromRankInfo, base), {})(info)

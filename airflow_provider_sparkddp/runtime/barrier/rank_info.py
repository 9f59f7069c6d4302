"""A rank's facts, in one frozen object. Nothing else reads Spark's task context; a missing fact is an error, not a default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RankInfo:
    """Who this rank is.

    Attributes:
        rank: 0 to world_size - 1; the barrier task's partition id.
        local_rank: place among the ranks of the same host, in the order of their ranks. Hosts may be uneven.
        local_world_size: ranks on the same host.
        node_rank: place of the host among the hosts, in the order of their lowest rank.
        host: address under which Spark reaches this task's executor.
        main_address, main_port: where rank 0's store listens.
        gpus: device addresses that Spark gave to this task; empty on a CPU.
        threads: CPU threads of this rank.
        interface: network interface that carries `host`; None when it isn't found.
    """

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    node_rank: int
    host: str
    main_address: str
    main_port: int
    gpus: tuple[str, ...]
    threads: int
    interface: str | None


@dataclass(frozen=True)
class Place:
    """Where a rank stands among the hosts; pure, from the hosts in the order of the ranks."""

    local_rank: int
    local_world_size: int
    node_rank: int

    @classmethod
    def of(cls, rank: int, hosts: Sequence[str]) -> Place:
        host = hosts[rank]
        return cls(
            local_rank=hosts[:rank].count(host),
            local_world_size=hosts.count(host),
            node_rank=list(dict.fromkeys(hosts)).index(host),
        )


def threads_for(rank: int, executors: Sequence[str], cores_per_executor: int, cpus_per_rank: int) -> int:
    """A rank's share of its executor's cores, at least what Spark reserved for its task.

    PySpark sets OMP_NUM_THREADS to `spark.task.cpus`: a rank alone on an eight-core executor would run on one thread.

    Args:
        executors: executor address of each rank, in the order of the ranks.
    """
    return max(cpus_per_rank, cores_per_executor // executors.count(executors[rank]), 1)

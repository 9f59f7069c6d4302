"""How the ranks find one another: one exchange through Spark that carries everything, then a store that rank 0 already holds.

An allGather costs about a second, so there is one. Task 0 binds the store's port before it tells anybody, and keeps it: no other
process can take the port in between.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.network import address_of, interface_of
from airflow_provider_sparkddp.runtime.barrier.rank_info import Place, RankInfo, threads_for
from airflow_provider_sparkddp.runtime.barrier.versions import require_same, versions
from airflow_provider_sparkddp.spec.errors import SparkDDPError

TIMEOUT = timedelta(minutes=5)


@dataclass(frozen=True)
class Cores:
    """What the driver knows of the executors: cores of each, and `spark.task.cpus`."""

    per_executor: int
    per_task: int
    threads_per_rank: int | None = None


@dataclass(frozen=True)
class Met:
    """What the tasks told one another.

    Attributes:
        task: this one's place.
        executors: executor address of each task, `host:port`.
        address: of this task, for the others.
        gpus: device addresses that Spark gave to this task.
        main_address, main_port: where the store listens.
        listener: the socket that listens there, on task 0; None elsewhere.
    """

    task: int
    executors: tuple[str, ...]
    address: str
    gpus: tuple[str, ...]
    main_address: str
    main_port: int
    listener: socket.socket | None


def meet(context: Any, cores: Cores, ports: tuple[int, int] | None = None) -> tuple[RankInfo, Any]:
    """This task's only rank, and the store that joins the ranks.

    Args:
        context: pyspark's BarrierTaskContext.
        ports: first and last port among which rank 0's store takes one; None: any.

    Raises:
        SparkDDPError: SDDP-311 when the tasks' packages differ or one is missing, SDDP-312 when all of the ports are taken.
    """
    return enter(exchange(context, ports), cores)


def enter(met: Met, cores: Cores) -> tuple[RankInfo, Any]:
    """The second half of `meet`, which imports torch."""
    (info,) = ranks_of(met, cores, 1)
    store = serve(met.listener, info) if met.listener else connect(info)
    all_connected(info, store)
    return info, store


def exchange(context: Any, ports: tuple[int, int] | None) -> Met:
    """The one exchange between the tasks. Raises SparkDDPError SDDP-311 or SDDP-312 as `meet`."""
    task = context.partitionId()
    executors = tuple(info.address for info in context.getTaskInfos())
    hosts = [_host(address) for address in executors]
    here = "127.0.0.1" if len(set(hosts)) == 1 else address_of(hosts[task])
    listener = listen(here, ports) if task == 0 else None
    # Before torch is imported: that it is missing is one of the things to tell.
    told = {"address": here, "port": listener.getsockname()[1] if listener else 0, "versions": versions()}
    everyone = [json.loads(each) for each in context.allGather(json.dumps(told))]
    require_same(hosts, [each["versions"] for each in everyone])
    resources = context.resources()
    gpus = tuple(resources["gpu"].addresses) if "gpu" in resources else ()
    return Met(task, executors, here, gpus, everyone[0]["address"], everyone[0]["port"], listener)


def ranks_of(met: Met, cores: Cores, ranks_per_task: int) -> list[RankInfo]:
    """The ranks of this task, which follow one another.

    Raises:
        SparkDDPError: SDDP-307 when the task's GPUs can't be dealt to its ranks in equal parts.
    """
    each, left = divmod(len(met.gpus), ranks_per_task)
    if left or (met.gpus and not each):
        raise SparkDDPError(
            "SDDP-307",
            f"ranks_per_task={ranks_per_task}, and Spark gave the task {len(met.gpus)} GPUs ({', '.join(met.gpus)}).",
            "Set spark.task.resource.gpu.amount to ranks_per_task, or to a multiple of it.",
        )
    hosts = [_host(address) for address in met.executors for _ in range(ranks_per_task)]
    threads = threads_for(met.task, met.executors, cores.per_executor, cores.per_task)
    first = met.task * ranks_per_task
    return [
        RankInfo(
            rank=rank,
            world_size=len(hosts),
            **vars(Place.of(rank, hosts)),
            host=hosts[rank],
            main_address=met.main_address,
            main_port=met.main_port,
            gpus=met.gpus[index * each : (index + 1) * each],
            threads=cores.threads_per_rank or max(threads // ranks_per_task, 1),
            interface=interface_of(met.address),
        )
        for index, rank in enumerate(range(first, first + ranks_per_task))
    ]


def serve(listener: socket.socket, info: RankInfo) -> Any:
    """The store of the ranks, in this process, on the socket that is there already."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, but not in its __all__

    return TCPStore(
        info.main_address,
        info.main_port,
        is_master=True,
        wait_for_workers=False,
        timeout=TIMEOUT,
        master_listen_fd=listener.detach(),
    )


def connect(info: RankInfo) -> Any:
    """The store of the ranks, which another process holds."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, but not in its __all__

    return TCPStore(info.main_address, info.main_port, is_master=False, timeout=TIMEOUT)


def all_connected(info: RankInfo, store: Any) -> None:
    """Rank 0 stays until all are connected: a store that goes away earlier leaves the others waiting for it."""
    store.set(f"met/{info.rank}", "1")
    if info.rank == 0:
        store.wait([f"met/{other}" for other in range(info.world_size)], TIMEOUT)


def listen(here: str, ports: tuple[int, int] | None) -> socket.socket:
    """Where the ranks will meet: a socket that is bound, to this one address, before its port is told.

    Args:
        ports: first and last port to try; None: any that is free.

    Raises:
        SparkDDPError: SDDP-312 when all of the ports are taken.
    """
    family = socket.AF_INET6 if ":" in here else socket.AF_INET
    for port in range(ports[0], ports[1] + 1) if ports else (0,):
        try:
            return socket.create_server((here, port), family=family, backlog=socket.SOMAXCONN)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise SparkDDPError(
        "SDDP-312",
        f"all ports of port_range {ports[0]}-{ports[1]} are taken on {here}."
        if ports
        else f"no port is free on {here}.",
        "Open and give a larger range, or end what holds its ports there.",
    )


def _host(address: str) -> str:
    """The host of an executor's address, which Spark writes `host:port`, IPv6 in brackets."""
    return address.rsplit(":", 1)[0]


def rank_environment(info: RankInfo, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment variables of a rank, for torch and its libraries.

    Raises:
        SparkDDPError: SDDP-307 when CUDA_VISIBLE_DEVICES is already set to something that contradicts Spark.
    """
    environment = {
        "MASTER_ADDR": info.main_address,
        "MASTER_PORT": str(info.main_port),
        "RANK": str(info.rank),
        "WORLD_SIZE": str(info.world_size),
        "LOCAL_RANK": "0",
        "OMP_NUM_THREADS": str(info.threads),
    }
    if info.interface:
        # Without it Gloo takes what the host's name resolves to, often the loopback.
        environment |= {"GLOO_SOCKET_IFNAME": info.interface, "NCCL_SOCKET_IFNAME": info.interface}
    visible = inherited.get("CUDA_VISIBLE_DEVICES")
    if info.gpus:
        if visible and not set(info.gpus) <= {device.strip() for device in visible.split(",")}:
            raise SparkDDPError(
                "SDDP-307",
                f"Spark gave rank {info.rank} the GPUs {', '.join(info.gpus)}, but CUDA_VISIBLE_DEVICES is {visible!r}.",
                "Unset CUDA_VISIBLE_DEVICES on the executors; Spark's addresses decide.",
            )
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(info.gpus)
    return environment

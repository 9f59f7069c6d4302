"""How the ranks find one another: one exchange through Spark that carries everything, then a store that rank 0 already holds.

An allGather costs about a second, so there is one. Rank 0 binds the store's port before it tells anybody, and keeps it: no other
process can take the port in between.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.network import address_of, interface_of
from airflow_provider_sparkddp.runtime.barrier.rank_info import Place, RankInfo, threads_for
from airflow_provider_sparkddp.spec.errors import SparkDDPError

TIMEOUT = timedelta(minutes=5)


@dataclass(frozen=True)
class Cores:
    """What the driver knows of the executors: cores of each, and `spark.task.cpus`."""

    per_executor: int
    per_rank: int
    threads_per_rank: int | None = None


def meet(context: Any, cores: Cores, ports: tuple[int, int] | None = None) -> tuple[RankInfo, Any]:
    """This rank's facts and the store that joins the ranks.

    Args:
        context: pyspark's BarrierTaskContext.
        ports: first and last port among which rank 0's store takes one; None: any.

    Raises:
        SparkDDPError: SDDP-312 when all of them are taken.
    """
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, but not in its __all__

    rank = context.partitionId()
    executors = [info.address for info in context.getTaskInfos()]
    hosts = [_host(address) for address in executors]
    here = "127.0.0.1" if len(set(hosts)) == 1 else address_of(hosts[rank])
    store = None
    if rank == 0:
        store = _bound_store(here, len(hosts), ports)
    told = json.dumps({"address": here, "port": store.port if store else 0})
    main = json.loads(context.allGather(told)[0])
    if store is None:
        store = TCPStore(main["address"], main["port"], len(hosts), is_master=False, timeout=TIMEOUT)
    # Rank 0 stays until all are connected: a store that goes away earlier leaves the others waiting for it.
    store.set(f"met/{rank}", "1")
    if rank == 0:
        store.wait([f"met/{other}" for other in range(len(hosts))], TIMEOUT)
    place = Place.of(rank, hosts)
    resources = context.resources()
    info = RankInfo(
        rank=rank,
        world_size=len(hosts),
        local_rank=place.local_rank,
        local_world_size=place.local_world_size,
        node_rank=place.node_rank,
        host=hosts[rank],
        main_address=main["address"],
        main_port=main["port"],
        gpus=tuple(resources["gpu"].addresses) if "gpu" in resources else (),
        threads=cores.threads_per_rank or threads_for(rank, executors, cores.per_executor, cores.per_rank),
        interface=interface_of(here),
    )
    return info, store


def _bound_store(here: str, world_size: int, ports: tuple[int, int] | None) -> Any:
    """Rank 0's store, which listens."""
    from torch.distributed import DistNetworkError, TCPStore  # type: ignore[attr-defined]

    for port in range(ports[0], ports[1] + 1) if ports else (0,):
        try:
            return TCPStore(here, port, world_size, is_master=True, wait_for_workers=False, timeout=TIMEOUT)
        except DistNetworkError as error:
            if "EADDRINUSE" not in str(error):
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

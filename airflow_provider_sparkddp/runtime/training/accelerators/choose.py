"""The hardware of a rank. Devices come from Spark's assigned addresses and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_sparkddp.runtime.imports import build
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.seams import is_own, normal


@dataclass(frozen=True)
class Hardware:
    """What Trainer(accelerator=…) takes, and the torch device type of its devices: "cpu", "cuda", "mps" or another."""

    accelerator: Any
    device: str

    @property
    def name(self) -> str:
        return self.accelerator if isinstance(self.accelerator, str) else type(self.accelerator).__name__

    @property
    def backend(self) -> str:
        """torch's collectives for it."""
        return "nccl" if self.device == "cuda" else "gloo"


def hardware(requested: Any, gpus: Sequence[str]) -> Hardware:
    """From trainer["accelerator"]; a user's own is built, and asked for the kind of its devices.

    Raises:
        SparkDDPError: SDDP-307 as `choose`; SDDP-409 when the user's own is no accelerator or not available here.
    """
    import torch

    if is_own(requested):
        return _own(requested)
    chosen = choose(str(normal("accelerator", requested)), gpus, torch.cuda.is_available())
    if chosen == "mps" and not torch.backends.mps.is_available():
        raise SparkDDPError(
            "SDDP-307", "accelerator='mps' is set, and torch finds no Apple GPU here.", "Use accelerator='auto'."
        )
    return Hardware(chosen, chosen)


def choose(requested: str, gpus: Sequence[str], cuda_works: bool) -> str:
    """ "cpu", "cuda" or "mps".

    Args:
        requested: auto, cpu, cuda or mps.
        gpus: addresses that Spark gave this task.
        cuda_works: whether torch finds a device.

    Raises:
        SparkDDPError: SDDP-307 when CUDA was asked for and Spark or torch has none.
    """
    if requested in ("cpu", "mps"):
        return requested
    if requested == "auto":
        return "cuda" if gpus and cuda_works else "cpu"
    if not gpus:
        raise SparkDDPError(
            "SDDP-307",
            f"accelerator={requested!r} is set, and Spark assigned no GPU to this task.",
            "Set conf={'spark.task.resource.gpu.amount': 1, 'spark.executor.resource.gpu.amount': …} on workers that offer "
            "GPUs (spark.worker.resource.gpu.*), or use accelerator='auto'.",
        )
    if not cuda_works:
        raise SparkDDPError(
            "SDDP-307",
            f"Spark assigned the GPU {', '.join(gpus)}, but torch finds no CUDA device here.",
            "Install a CUDA build of torch and the driver on the executors, or use accelerator='cpu'.",
        )
    return "cuda"


def _own(requested: Any) -> Hardware:
    built = build({"kwargs": {}, **requested}, "trainer['accelerator']")
    what = f"trainer['accelerator']={requested['$import']!r}"
    if not all(hasattr(built, name) for name in ("parse_devices", "get_parallel_devices", "is_available")):
        raise SparkDDPError(
            "SDDP-409", f"{what} gives a {type(built).__name__}.", "Let the class extend Lightning's Accelerator."
        )
    if not built.is_available():
        raise SparkDDPError(
            "SDDP-409", f"{what} says that it is not available here.", "Run where its hardware is, or use 'auto'."
        )
    devices = built.get_parallel_devices(built.parse_devices(1))
    return Hardware(built, devices[0].type)

"""Devices come from Spark's assigned addresses and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_sparkddp.spec.errors import SparkDDPError


def choose(requested: str, gpus: Sequence[str], cuda_works: bool) -> str:
    """ "cpu" or "cuda".

    Args:
        requested: auto, cpu, cuda or gpu.
        gpus: addresses that Spark gave this task.
        cuda_works: whether torch finds a device.

    Raises:
        SparkDDPError: SDDP-307 when CUDA was asked for and Spark or torch has none.
    """
    if requested == "cpu":
        return "cpu"
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

"""Strategies that spread a model over the ranks: FSDP2 by the module's own `configure_model`, FSDP1 and DeepSpeed by Lightning."""

from __future__ import annotations

import importlib
from typing import Any

from airflow_provider_sparkddp.runtime.imports import require_package
from airflow_provider_sparkddp.runtime.models.construct import has_configure_model
from airflow_provider_sparkddp.spec.errors import SparkDDPError

# Lightning's classes whose ranks hold only a part of the model.
KINDS = ("ModelParallelStrategy", "FSDPStrategy", "DeepSpeedStrategy")


def model_parallel(package: str) -> Any:
    """FSDP2. As each rank is a node to Lightning, its "auto" sizes are: data parallel over all ranks, no tensor parallel."""
    return importlib.import_module(f"{package}.strategies").ModelParallelStrategy(save_distributed_checkpoint=False)


def fsdp(package: str) -> Any:
    return importlib.import_module(f"{package}.strategies").FSDPStrategy()


def deepspeed(package: str, name: str, batch_size: int) -> Any:
    """Raises SparkDDPError SDDP-311 without DeepSpeed."""
    require_package("deepspeed", f"strategy={name!r}", "pip install 'airflow-provider-sparkddp[deepspeed]'")
    stage = int(name.rpartition("_")[2])
    base = importlib.import_module(f"{package}.strategies").DeepSpeedStrategy
    return base(stage=stage, logging_batch_size_per_gpu=batch_size)


def is_sharded(package: str, strategy: Any) -> bool:
    """Whether a rank alone doesn't hold the whole model."""
    module = importlib.import_module(f"{package}.strategies")
    return isinstance(strategy, tuple(getattr(module, kind) for kind in KINDS))


def require_configure_model(package: str, strategy: Any, module: Any) -> None:
    """Raises SparkDDPError SDDP-408 where ModelParallelStrategy would have nothing that tells it how to shard."""
    kind = importlib.import_module(f"{package}.strategies").ModelParallelStrategy
    if not isinstance(strategy, kind) or has_configure_model(module):
        return
    raise SparkDDPError(
        "SDDP-408",
        f"strategy='model_parallel' shards what the module's configure_model says, and {type(module).__name__} has none.",
        "Write configure_model(self), which calls torch.distributed.fsdp.fully_shard(part, mesh=self.device_mesh['data_parallel']) "
        "for its parts, or use strategy='ddp'.",
    )


def whole(strategy: Any, module: Any) -> dict[str, Any]:
    """The whole model's state on rank 0, on its CPU; on the other ranks nothing or the same. A collective.

    DeepSpeed's stage 3 keeps its parameters empty between the steps and gathers them on request.
    """
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    if not any(kind.__name__ == "DeepSpeedStrategy" for kind in type(strategy).__mro__):
        return dict(
            get_model_state_dict(strategy.model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        )
    with importlib.import_module("deepspeed").zero.GatheredParameters(list(module.parameters())):
        return {name: tensor.detach().cpu().clone() for name, tensor in module.state_dict().items()}


def answers(strategy: Any, module: Any, x: Any) -> Any:
    """The model's predictions for x, by all ranks together. A collective: every rank gives the same x."""
    if strategy.model is module:
        return module(x)
    # FSDP1 and DeepSpeed gather parameters in their wrapper's forward.
    return strategy._forward_redirection(strategy.model, module, "forward", x)

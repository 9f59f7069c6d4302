"""Distributed data parallel: each rank holds the model, and gradients are averaged at each step, as they are or compressed."""

from __future__ import annotations

import importlib
from typing import Any

# Local steps before the ranks average their weights, and steps between two averages: those of Lightning's documentation.
LOCAL_FROM, LOCAL_PERIOD = 8, 4


def single_device(package: str, device: str) -> Any:
    """One rank's own; device: "cpu", "cuda", …"""
    return importlib.import_module(f"{package}.strategies").SingleDeviceStrategy(device)


def ddp(package: str, name: str) -> Any:
    """Lightning's DDPStrategy.

    Args:
        name: a strategy of spec/seams.py that begins with ddp.
    """
    base = importlib.import_module(f"{package}.strategies").DDPStrategy
    if name == "ddp_post_localsgd":
        return _settling(base)(**_hook(name))
    return base(find_unused_parameters=name == "ddp_find_unused_parameters_true", **_hook(name))


def _hook(name: str) -> dict[str, Any]:
    """DDPStrategy's arguments for a communication hook of torch."""
    hooks = "torch.distributed.algorithms.ddp_comm_hooks"
    if name in ("ddp_fp16_compress", "ddp_bf16_compress"):
        module = importlib.import_module(f"{hooks}.default_hooks")
        return {"ddp_comm_hook": getattr(module, f"{name.removeprefix('ddp_')}_hook")}
    if name == "ddp_powersgd":
        module = importlib.import_module(f"{hooks}.powerSGD_hook")
        return {"ddp_comm_hook": module.powerSGD_hook, "ddp_comm_state": module.PowerSGDState(process_group=None)}
    if name == "ddp_post_localsgd":
        module = importlib.import_module(f"{hooks}.post_localSGD_hook")
        state = module.PostLocalSGDState(process_group=None, subgroup=None, start_localSGD_iter=LOCAL_FROM)
        return {
            "ddp_comm_hook": module.post_localSGD_hook,
            "ddp_comm_state": state,
            "model_averaging_period": LOCAL_PERIOD,
        }
    return {}


def _settling(base: type) -> type:
    """Between two averages each rank has weights of its own: the last ones are averaged once more."""

    def teardown(self: Any) -> None:
        import torch.distributed as dist

        if self.lightning_module is not None and dist.is_initialized():
            for parameter in self.lightning_module.parameters():
                dist.all_reduce(parameter.data)
                parameter.data /= dist.get_world_size()
        base.teardown(self)  # type: ignore[attr-defined]

    return type(base.__name__, (base,), {"teardown": teardown})

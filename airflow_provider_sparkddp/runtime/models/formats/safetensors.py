"""Weights as safetensors: tied weights are saved once and tied again at load; nothing is ever unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from airflow_provider_sparkddp.spec.errors import SparkDDPError


def save(state: Mapping[str, Any], path: Path) -> dict[str, str]:
    """Write a module's state; the tied names, each with the name under which its tensor was saved.

    Raises:
        SparkDDPError: SDDP-503 when the state holds something that is not a tensor.
    """
    kept, tied = split_tied(state)
    save_tensors(kept, path)
    return tied


def save_tensors(tensors: Mapping[str, Any], path: Path) -> None:
    """Write named tensors that share no memory."""
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path)


def load_tensors(path: Path) -> dict[str, Any]:
    """Named tensors, mapped from the file. Raises SparkDDPError SDDP-501 when it is not a whole safetensors file."""
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise SparkDDPError(
            "SDDP-501", f"{path.name} is not a whole safetensors file ({error}).", "Export again."
        ) from error


def names(path: Path) -> list[str]:
    """Names of the tensors in the file. Raises SparkDDPError SDDP-501 when it is not a whole safetensors file."""
    return list(load_tensors(path))


def split_tied(state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The tensors to save, none sharing memory with another, and the names that are the same tensor as a saved one."""
    kept: dict[str, Any] = {}
    tied: dict[str, str] = {}
    seen: dict[tuple[Any, ...], str] = {}
    storages: set[int] = set()
    for name, tensor in state.items():
        if not isinstance(tensor, torch.Tensor):
            raise SparkDDPError(
                "SDDP-503",
                f"the model's state {name!r} is a {type(tensor).__name__}, not a tensor.",
                "Keep it in a buffer or in the hyper-parameters; only tensors are exported.",
            )
        identity = (
            tensor.untyped_storage().data_ptr(),
            tensor.storage_offset(),
            tensor.shape,
            tensor.stride(),
            tensor.dtype,
        )
        if tensor.numel() and identity in seen:
            tied[name] = seen[identity]
            continue
        seen[identity] = name
        # Two views of one block that aren't the same tensor: safetensors refuses them, so the later ones are copied.
        kept[name] = tensor.clone() if identity[0] in storages else tensor
        storages.add(identity[0])
    return kept, tied


def load(module: Any, path: Path, tied: Mapping[str, str]) -> None:
    """Load the weights into the module, strictly, with the ties that it was saved with.

    Raises:
        SparkDDPError: SDDP-501 (not a whole safetensors file) or SDDP-503 (names or shapes differ).
    """
    state = load_tensors(path)
    state |= {name: state[kept] for name, kept in tied.items() if kept in state}
    try:
        _match_dtypes(module, state)
        module.load_state_dict(state, strict=True)
    except RuntimeError as error:
        raise SparkDDPError(
            "SDDP-503",
            f"the weights don't fit {type(module).__name__}: {error}",
            "Load with the code that the model was trained with, or train and export again.",
        ) from error
    _tie(module, tied)


def _match_dtypes(module: Any, state: Mapping[str, Any]) -> None:
    """A model trained in bf16-true or 64-true stays in that number format, and one that mixes formats in its own mixture."""
    formats = {tensor.dtype for tensor in state.values() if tensor.is_floating_point()}
    if len(formats) == 1:
        module.to(next(iter(formats)))  # also what is no part of the state
    for name, tensor in module.state_dict(keep_vars=True).items():
        if isinstance(tensor, torch.Tensor) and name in state and tensor.dtype != state[name].dtype:
            tensor.data = tensor.data.to(state[name].dtype)


def _tie(module: Any, tied: Mapping[str, str]) -> None:
    parameters = dict(module.named_parameters(remove_duplicate=False))
    for name, kept in tied.items():
        if name in parameters and kept in parameters and parameters[name] is not parameters[kept]:
            owner, _, attribute = name.rpartition(".")
            setattr(module.get_submodule(owner), attribute, parameters[kept])

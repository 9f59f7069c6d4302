"""What a training starts from: the tensors of a stored model or a checkpoint. No code of theirs is imported, nothing is unpickled."""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.models import bundle
from airflow_provider_sparkddp.runtime.models.construct import has_configure_model
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import Manifest

# Names of each kind that an error and the result tell.
FEW = 5
MANY = 20
_REFUSED_GLOBAL = re.compile(r"GLOBAL (\S+)")


def identify(init_from: Mapping[str, Any] | None, settings: Mapping[str, Any], manifest: Manifest) -> dict[str, Any]:
    """On the driver, without torch: what lies there now, so that all ranks start from the same. Empty without an init_from.

    Returns:
        path, strict, sha256 (of model.json's body, or of the checkpoint's bytes), alias (None of a checkpoint), and warnings: where
        inputs and target mean something else than they did to the earlier model.

    Raises:
        SparkDDPError: SDDP-501 when nothing whole is there.
    """
    if not init_from:
        return {}
    uri = init_from["path"]
    if not _is_checkpoint(uri):
        description, sha256 = bundle.identify(uri)
        warnings = list(_differences(description, settings, manifest))
        for text in warnings:
            print(f"sparkddp: warning: init_from: {text}", flush=True)
        return {**init_from, "sha256": sha256, "alias": description.alias, "warnings": warnings}
    try:
        return {**init_from, "sha256": storage.sha256(uri), "alias": None, "warnings": []}
    except FileNotFoundError:
        raise SparkDDPError("SDDP-501", f"init_from: {uri} does not exist.", "Check the path.") from None


def _is_checkpoint(uri: str) -> bool:
    return uri.endswith(".ckpt")


def _differences(earlier: bundle.ModelDescription, settings: Mapping[str, Any], manifest: Manifest) -> Iterator[str]:
    then, now = [column.name for column in earlier.features], list(settings["features"])
    if then != now:
        yield f"its features were {', '.join(then)}; now they are {', '.join(now)}"
    if earlier.target.name != settings["target"]:
        yield f"its target was {earlier.target.name!r}; now it is {settings['target']!r}"
    for name in now:
        if name in then and earlier.encoders.get(name) != manifest.encoders.get(name):
            yield f"the feature {name!r} was encoded otherwise: its numbers mean something else now"


def begin(module: Any, start: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
    """Give the module its first weights: now, or, where it has a configure_model of its own, when that has made all layers.

    Args:
        start: of `identify`.
        dtype: that of the inputs; a training in float64 keeps all bits of float64 weights.

    Returns:
        {"init_from": what the training started from, and, once the weights are in, `load_into`'s words}; empty without a start.

    Raises:
        SparkDDPError: SDDP-501, 503 or 506.
    """
    if not start:
        return {}
    import torch

    told: dict[str, Any] = {name: start[name] for name in ("path", "sha256", "alias", "warnings")}

    def load() -> None:
        if dtype == torch.float64:
            module.to(dtype)
        with _weights(start) as state:
            told.update(load_into(module, state, start["strict"]))

    if has_configure_model(module):
        module.configure_model = _once_after(module, load)
    else:
        load()
    return {"init_from": told}


def _once_after(module: Any, load: Any) -> Any:
    """No hook runs between configure_model and the strategy's own changes to the layers."""
    configure = module.configure_model

    @functools.wraps(configure)
    def configure_model() -> None:
        configure()
        del module.configure_model
        load()

    return configure_model


@contextmanager
def _weights(start: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Name -> tensor on the CPU; the files that they may be mapped from stay until the end."""
    with tempfile.TemporaryDirectory(prefix="sparkddp-start-") as scratch:
        read = _of_checkpoint if _is_checkpoint(start["path"]) else _of_model
        yield read(start["path"], start["sha256"], Path(scratch))


def _of_model(uri: str, sha256: str, scratch: Path) -> dict[str, Any]:
    from airflow_provider_sparkddp.runtime.models.formats import safetensors

    description, found = bundle.identify(uri)
    _require_same(uri, sha256, found)
    files = bundle.fetch(uri, description, scratch)
    if bundle.WEIGHTS not in files:
        raise SparkDDPError("SDDP-501", f"{uri} holds a model.json without weights.", "Export again.")
    state = safetensors.load_tensors(files[bundle.WEIGHTS])
    return state | {name: state[kept] for name, kept in description.tied.items() if kept in state}


def _of_checkpoint(uri: str, sha256: str, scratch: Path) -> dict[str, Any]:
    import torch

    local = scratch / "start.ckpt"
    storage.get_file(uri, local)
    _require_same(uri, sha256, storage.sha256(f"file://{local}"))
    try:
        read = torch.load(local, map_location="cpu", weights_only=True)
    except Exception as error:
        refused = _REFUSED_GLOBAL.search(str(error))
        why = (
            f"it holds objects ({refused[1]})" if refused else f"it is not whole ({' '.join(str(error).split())[:200]})"
        )
        raise _unreadable(uri, why) from None
    state = read.get("state_dict") if isinstance(read, Mapping) else None
    if not isinstance(state, Mapping) or not state:
        raise _unreadable(uri, "it holds no state_dict")
    return {name: tensor for name, tensor in state.items() if isinstance(tensor, torch.Tensor)}


def _unreadable(uri: str, why: str) -> SparkDDPError:
    return SparkDDPError(
        "SDDP-506",
        f"init_from: {uri} cannot be read as weights alone: {why}.",
        "Start from an exported model; or save the checkpoint's state_dict by itself where you trust it (docs/reference/errors.md).",
    )


def _require_same(uri: str, wanted: str, found: str) -> None:
    """Another rank may have read what lay there before."""
    if wanted != found:
        raise SparkDDPError(
            "SDDP-501",
            f"init_from: {uri} was replaced while the training started (SHA-256 {wanted[:12]}…, now {found[:12]}…).",
            "Clear the task.",
        )


def load_into(module: Any, state: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    """Copy the tensors into the module's own, sharded ones too; every rank of a sharded module comes here with the whole state.

    Args:
        state: name -> tensor.
        strict: refuse what doesn't fit; else take what does, by name and shape.

    Returns:
        loaded: count; missing, unexpected, reshaped: names that were not loaded, the first `MANY` of each.

    Raises:
        SparkDDPError: SDDP-503 naming the first few of each kind; without strict only when nothing fits.
    """
    own = module.state_dict()
    if any(_holds_nothing(tensor) for tensor in own.values()):
        raise SparkDDPError(
            "SDDP-503",
            f"init_from: {type(module).__name__} is on the meta device, which holds no weights.",
            "Build its layers on a real device, or shard them by fully_shard in configure_model.",
        )
    reshaped = [name for name in own if name in state and not _fits(own[name], state[name])]
    fitting = {name: tensor for name, tensor in state.items() if name not in reshaped}
    missing, unexpected = _load(module, own, fitting)
    missing = [name for name in missing if name not in reshaped]
    loaded = len(fitting) - len(unexpected)
    shapes = [f"{name} {tuple(state[name].shape)} into {tuple(own[name].shape)}" for name in reshaped]
    found = {"missing": missing, "unexpected": unexpected, "reshaped": shapes}
    if not loaded or (strict and any(found.values())):
        raise SparkDDPError(
            "SDDP-503",
            f"init_from: the weights don't fit {type(module).__name__} ({loaded} do): "
            + "; ".join(f"{len(names)} {kind}: {_first(names, FEW)}" for kind, names in found.items() if names),
            "Train the same model with the same model_kwargs"
            + (", or give init_from={'path': …, 'strict': False} to take what fits." if loaded else "."),
        )
    return {"loaded": loaded, **{kind: _cut(names) for kind, names in found.items()}}


def _holds_nothing(tensor: Any) -> bool:
    """Of sharded ones torch makes real ones when it loads."""
    return bool(getattr(tensor, "is_meta", False)) and not _is_sharded(tensor)


def _is_sharded(tensor: Any) -> bool:
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def _fits(own: Any, given: Any) -> bool:
    from torch.nn.parameter import is_lazy

    return is_lazy(own) or getattr(own, "shape", None) == given.shape


def _load(module: Any, own: Mapping[str, Any], state: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Missing and unexpected names; the module's own hooks may rename what an earlier version wrote."""
    if not any(map(_is_sharded, own.values())):
        found = module.load_state_dict(state, strict=False)
        # What a module keeps besides tensors isn't stored.
        return [name for name in found.missing_keys if not name.endswith("_extra_state")], list(found.unexpected_keys)
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict

    # Given a copy: torch puts the module's own tensors in it.
    set_model_state_dict(module, dict(state), options=StateDictOptions(full_state_dict=True, strict=False))
    return [name for name in own if name not in state], [name for name in state if name not in own]


def _first(names: Sequence[str], count: int) -> str:
    return ", ".join(names[:count]) + (", …" if len(names) > count else "")


def _cut(names: Sequence[str]) -> list[str]:
    return [*names[:MANY], *([f"and {len(names) - MANY:,} more"] if len(names) > MANY else [])]


def summary(told: Mapping[str, Any]) -> list[str]:
    """Lines for a person; none of a training that started afresh."""
    if not told:
        return []
    name = f"{told['alias']!r}, " if told["alias"] else ""
    left = [
        f"init_from: not loaded, {kind}: {', '.join(told[kind])}"
        for kind in ("missing", "unexpected", "reshaped")
        if told[kind]
    ]
    head = f"started from {name}{told['path']} (sha256 {told['sha256'][:12]}…): {told['loaded']:,} tensors"
    return [head, *left]

"""Stored models, written by the package's own parts in the way in which a training writes them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.runtime.models import bundle
from airflow_provider_sparkddp.spec import paths

ZOO = "tests.support.zoo"


def description(alias: str = "line", **changes: Any) -> bundle.ModelDescription:
    """A description of `Line` with the features a and b."""
    facts: dict[str, Any] = {
        "model": f"{ZOO}:Line",
        "class_path": f"{ZOO}:Line",
        "model_kwargs": {},
        "hyper_parameters": {},
        "features": tuple(bundle.ColumnFacts(name, "double") for name in ("a", "b")),
        "target": bundle.ColumnFacts("y", "double"),
        "output_shape": (),
        "tied": {},
        "versions": {},
        "training": {"epochs": 1, "rank_rows": [6], "rank_bytes": [60], "history": []},
    }
    return bundle.ModelDescription(alias=alias, **{**facts, **changes})


def store(
    folder: Path,
    model: str = "Line",
    kwargs: Mapping[str, Any] | None = None,
    *,
    alias: str = "line",
    features: Sequence[str | bundle.ColumnFacts] = ("a", "b"),
    encoders: Mapping[str, Mapping[str, Any]] | None = None,
    sample: Any = None,
    prepare: Callable[[Any], Any] = lambda module: None,
    seed: int = 0,
) -> Any:
    """Build a module, let `prepare` train it, and store it in the folder; the module, as it was stored.

    Args:
        model: import path, or a name in the zoo.
        sample: inputs whose predictions are stored too, (rows, features).
        seed: of the weights that it begins with.
    """
    # Imported here: processes that only describe models start without torch.
    import torch

    from airflow_provider_sparkddp.runtime.models.construct import construct
    from airflow_provider_sparkddp.runtime.models.formats import safetensors
    from airflow_provider_sparkddp.runtime.models.predict import forward

    path = model if ":" in model else f"{ZOO}:{model}"
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module, recorded = construct(path, kwargs or {})
        prepare(module)
    predictions = forward(module, sample) if sample is not None else None
    with tempfile.TemporaryDirectory() as scratch:
        files = {bundle.WEIGHTS: Path(scratch) / bundle.WEIGHTS}
        tied = safetensors.save(module.state_dict(), files[bundle.WEIGHTS])
        if predictions is not None:
            files[bundle.PARITY] = Path(scratch) / bundle.PARITY
            safetensors.save_tensors({"inputs": sample, "predictions": predictions}, files[bundle.PARITY])
        facts = description(
            alias,
            model=path,
            class_path=f"{type(module).__module__}:{type(module).__name__}",
            model_kwargs=recorded,
            features=tuple(bundle.ColumnFacts(f, "double") if isinstance(f, str) else f for f in features),
            encoders=encoders or {},
            output_shape=tuple(predictions.shape[1:]) if predictions is not None else (),
            tied=tied,
        )
        bundle.publish(paths.absolute_uri(folder.as_uri(), "folder"), facts, files)
    return module

"""The model that a training leaves: free of its Trainer, with its answers on a sample, written to storage by rank 0."""

from __future__ import annotations

import json
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.runtime.models import bundle
from airflow_provider_sparkddp.runtime.models.formats import safetensors
from airflow_provider_sparkddp.spec.manifests import Manifest


@dataclass(frozen=True)
class Trained:
    """What is written.

    Attributes:
        module: the trained module, for what it says of itself; a sharded one holds only this rank's part of the weights.
        kwargs: the arguments that rebuild it.
        state: name -> tensor of the whole model.
        sample, predictions: inputs (rows, features) and the model's answers, in eval mode.
        training: how it was trained, for a person.
    """

    module: Any
    kwargs: Mapping[str, Any]
    state: Mapping[str, Any]
    sample: Any
    predictions: Any
    training: Mapping[str, Any]


def write(trained: Trained, manifest: Manifest, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Publish the model in settings["model_folder"]; alias, bytes and SHA-256 of what was written."""
    facts = {c.name: bundle.ColumnFacts(c.name, c.type, c.length) for c in manifest.columns}
    features, cls = settings["features"], type(trained.module)
    with tempfile.TemporaryDirectory(prefix="sparkddp-model-") as scratch:
        files = {bundle.WEIGHTS: Path(scratch) / bundle.WEIGHTS, bundle.PARITY: Path(scratch) / bundle.PARITY}
        tied = safetensors.save(trained.state, files[bundle.WEIGHTS])
        safetensors.save_tensors({"inputs": trained.sample, "predictions": trained.predictions}, files[bundle.PARITY])
        description = bundle.ModelDescription(
            alias=settings["alias"],
            model=settings["model"],
            class_path=f"{cls.__module__}:{cls.__qualname__}",
            model_kwargs=trained.kwargs,
            hyper_parameters=_plain(dict(trained.module.hparams)),
            features=tuple(facts[name] for name in features),
            target=facts[settings["target"]],
            encoders={name: manifest.encoders[name] for name in features if name in manifest.encoders},
            output_shape=tuple(trained.predictions.shape[1:]),
            tied=tied,
            versions=_versions(),
            training={
                **trained.training,
                "batch_size": settings["batch_size"],
                "world_size": settings["world_size"],
                "rank_rows": settings["rank_rows"],
                "rank_bytes": settings["rank_bytes"],
                "seed": manifest.seed,
            },
        )
        return bundle.publish(settings["model_folder"], description, files)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for name, value in values.items():
        try:
            kept[str(name)] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            continue  # an object; the arguments that rebuild it stand in model_kwargs
    return kept


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("torch", "pytorch-lightning", "safetensors", "pyspark"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found

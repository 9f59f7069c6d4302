"""What one rank does: read its rows, build the module, train, and (rank 0) write the model to storage."""

from __future__ import annotations

import importlib
import json
import platform
import tempfile
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.barrier.rendezvous import rank_environment
from airflow_provider_sparkddp.runtime.data.dataset import RankLoader, read_share, sample_rows, tensors
from airflow_provider_sparkddp.runtime.data.shards import shares_for, steps
from airflow_provider_sparkddp.runtime.models import bundle
from airflow_provider_sparkddp.runtime.models.construct import construct, lightning_package
from airflow_provider_sparkddp.runtime.models.formats import safetensors
from airflow_provider_sparkddp.runtime.models.predict import forward
from airflow_provider_sparkddp.runtime.progress.writer import ProgressWriter
from airflow_provider_sparkddp.runtime.training.callbacks.recorder import numbers, recorder
from airflow_provider_sparkddp.runtime.training.group import process_group
from airflow_provider_sparkddp.runtime.training.isolation import isolated, quiet_lightning
from airflow_provider_sparkddp.runtime.training.precision.formats import input_dtype
from airflow_provider_sparkddp.runtime.training.trainer import Seams, build_trainer
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import TRAIN, VALIDATION, Manifest, rows_of
from airflow_provider_sparkddp.storage.manifests import read_manifest

PARITY_ROWS = 256


@dataclass(frozen=True)
class Data:
    """A rank's rows. `rank_rows`: training rows of every rank."""

    train: RankLoader
    validation: RankLoader | None
    rank_rows: list[int]
    sample: Any


def train_rank(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Train this rank's share. The report is small plain data; weights go to storage, never through the driver.

    Raises:
        SparkDDPError: codes 208, 209, 307 and 401 to 407.
    """
    with isolated(rank_environment(info), info.threads):
        # A target (N,) against an output (N, 1) broadcasts to N x N and trains wrongly, with only this warning.
        warnings.filterwarnings("error", message="Using a target size", category=UserWarning)
        try:
            return _train(info, store, settings)
        except UserWarning as warning:
            raise SparkDDPError(
                "SDDP-407",
                f"the loss got shapes that broadcast into each other: {' '.join(str(warning).split())}",
                "y has the shape (rows,); let forward return (rows,), for example by .squeeze(-1).",
            ) from warning


def _train(info: RankInfo, store: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    arguments, started = settings["trainer"], time.monotonic()
    seams = Seams.of(arguments, info)
    manifest = read_manifest(settings["manifest"])
    importlib.import_module("pytorch_lightning").seed_everything(manifest.seed, verbose=False)
    module, kwargs = construct(settings["model"], settings["model_kwargs"])
    package = lightning_package(type(module)) or "pytorch_lightning"
    quiet_lightning()
    data = _data(manifest, settings, info, input_dtype(seams.precision))
    progress = ProgressWriter(settings["progress"]) if info.rank == 0 else None
    record = recorder(package, info, progress, data.rank_rows)
    with tempfile.TemporaryDirectory(prefix="sparkddp-rank-") as root, process_group(info, store, seams.backend):
        trainer = build_trainer(package, arguments, seams, info, [record], root)
        trainer.fit(module, data.train, data.validation)
        metrics = numbers(trainer.callback_metrics)
        epochs = trainer.current_epoch
    report = _report(info, seams, data, record, started)
    if info.rank == 0:
        report |= {"history": record.history, "metrics": metrics, "epochs": epochs}
        report["class_module"] = type(module).__module__
        trained = {"epochs": epochs, "metrics": metrics, "history": record.history}
        report["model"] = _write_model(module.cpu(), kwargs, data.sample, manifest, settings, trained)
    return report


def _data(manifest: Manifest, settings: Mapping[str, Any], info: RankInfo, dtype: torch.dtype) -> Data:
    columns = [*settings["features"], settings["target"]]

    def load(split: str, seed: int | None) -> tuple[RankLoader, list[int]]:
        shares = shares_for(manifest, split, info.world_size)
        rows = rows_of(shares)
        table = read_share(manifest, settings["manifest"], shares[info.rank], columns)
        x, y = tensors(table, settings["features"], settings["target"], dtype, manifest.encoders)
        return RankLoader(x, y, steps(rows, settings["batch_size"]), seed, info.rank), rows

    train, rank_rows = load(TRAIN, manifest.seed)
    validation = load(VALIDATION, None)[0] if manifest.rows(VALIDATION) else None
    return Data(train, validation, rank_rows, sample_rows((validation or train).x, PARITY_ROWS))


def _report(info: RankInfo, seams: Seams, data: Data, record: Any, started: float) -> dict[str, Any]:
    return {
        "rank": info.rank,
        "host": info.host,
        "local_rank": info.local_rank,
        "node_rank": info.node_rank,
        "gpus": list(info.gpus),
        "threads": info.threads,
        "interface": info.interface,
        "accelerator": seams.accelerator,
        "backend": seams.backend,
        "precision": seams.precision,
        "rows": data.rank_rows[info.rank],
        "steps": len(data.train),
        "first_step_at": record.first_step_at,
        "seconds": round(time.monotonic() - started, 3),
    }


def _write_model(
    module: Any,
    kwargs: dict[str, Any],
    sample: Any,
    manifest: Manifest,
    settings: Mapping[str, Any],
    trained: dict[str, Any],
) -> dict[str, Any]:
    """Write the trainer-free model with its predictions on a sample: eval mode, no gradients, the CPU."""
    predictions = forward(module, sample)
    facts = {c.name: bundle.ColumnFacts(c.name, c.type, c.length) for c in manifest.columns}
    features = settings["features"]
    cls = type(module)
    with tempfile.TemporaryDirectory(prefix="sparkddp-model-") as scratch:
        files = {bundle.WEIGHTS: Path(scratch) / bundle.WEIGHTS, bundle.PARITY: Path(scratch) / bundle.PARITY}
        tied = safetensors.save(module, files[bundle.WEIGHTS])
        safetensors.save_tensors({"inputs": sample, "predictions": predictions}, files[bundle.PARITY])
        description = bundle.ModelDescription(
            alias=settings["alias"],
            model=settings["model"],
            class_path=f"{cls.__module__}:{cls.__qualname__}",
            model_kwargs=kwargs,
            hyper_parameters=_plain(dict(module.hparams)),
            features=tuple(facts[name] for name in features),
            target=facts[settings["target"]],
            encoders={name: manifest.encoders[name] for name in features if name in manifest.encoders},
            output_shape=tuple(predictions.shape[1:]),
            tied=tied,
            versions=_versions(),
            training={
                **trained,
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

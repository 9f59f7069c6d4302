"""What one rank does: read its rows, build the module, train, and (rank 0) write the model to storage."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytorch_lightning
import torch

from airflow_provider_sparkddp.runtime.barrier.network import stray_ports
from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.barrier.rendezvous import rank_environment
from airflow_provider_sparkddp.runtime.data.dataset import RankLoader, read_share, sample_rows, tensors
from airflow_provider_sparkddp.runtime.data.shards import shares_for, steps
from airflow_provider_sparkddp.runtime.models.construct import construct
from airflow_provider_sparkddp.runtime.models.predict import forward
from airflow_provider_sparkddp.runtime.progress.capture import telling
from airflow_provider_sparkddp.runtime.progress.channel import Channel
from airflow_provider_sparkddp.runtime.training import start, trained
from airflow_provider_sparkddp.runtime.training.attached import Attached
from airflow_provider_sparkddp.runtime.training.callbacks.recorder import numbers, recorder
from airflow_provider_sparkddp.runtime.training.group import process_group
from airflow_provider_sparkddp.runtime.training.guards import Guards
from airflow_provider_sparkddp.runtime.training.isolation import isolated, quiet_lightning
from airflow_provider_sparkddp.runtime.training.trainer import Seams, build_trainer
from airflow_provider_sparkddp.runtime.training.tuning import Tuning, found, use
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import TRAIN, VALIDATION, Manifest, rows_of
from airflow_provider_sparkddp.spec.ports import ports
from airflow_provider_sparkddp.storage.manifests import read_manifest

PARITY_ROWS = 256


@dataclass(frozen=True)
class Data:
    """A rank's rows. `rank_rows`, `validation_rows`: those of every rank."""

    train: RankLoader
    validation: RankLoader | None
    rank_rows: list[int]
    validation_rows: list[int]
    sample: Any

    def in_batches(self, batch_size: int) -> Data:
        """The same rows in batches of another size."""

        def anew(loader: RankLoader, rows: list[int]) -> RankLoader:
            return RankLoader(loader.x, loader.y, steps(rows, batch_size), loader.seed, loader.rank)

        validation = anew(self.validation, self.validation_rows) if self.validation else None
        return replace(self, train=anew(self.train, self.rank_rows), validation=validation)


def train_rank(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Train this rank's share. The report is small plain data; weights go to storage, never through the driver.

    Raises:
        SparkDDPError: codes 103, 104, 208, 209, 307, 311, 401 to 415, 501, 503 and 506.
    """
    with isolated(rank_environment(info), info.threads), telling(info.rank, info.host, settings) as channel:
        # A target (N,) against an output (N, 1) broadcasts to N x N and trains wrongly, with only this warning.
        warnings.filterwarnings("error", message="Using a target size", category=UserWarning)
        try:
            report = _train(info, store, settings, channel)
        except UserWarning as warning:
            raise SparkDDPError(
                "SDDP-407",
                f"the loss got shapes that broadcast into each other: {' '.join(str(warning).split())}",
                "y has the shape (rows,); let forward return (rows,), for example by .squeeze(-1).",
            ) from warning
    return report | {"channel": channel.outcome}


def _train(info: RankInfo, store: Any, settings: Mapping[str, Any], channel: Channel) -> dict[str, Any]:
    arguments, started = settings["trainer"], time.monotonic()
    manifest = read_manifest(settings["manifest"])
    pytorch_lightning.seed_everything(manifest.seed, verbose=False)
    module, kwargs = construct(settings["model"], settings["model_kwargs"])
    quiet_lightning()
    if settings.get("port_range") and (stray := stray_ports(ports(settings["port_range"]))):
        warnings.warn(stray, stacklevel=1)
    chosen = Seams.of(module, arguments, info, settings["batch_size"])
    data = _data(manifest, settings, info, chosen.format.input_dtype)
    begun = start.begin(module, settings.get("init_from") or {}, chosen.format.input_dtype)
    tuning = Tuning(module, chosen, info, arguments, data.train, min(data.rank_rows))
    settings, data, kwargs, tune = _tuned(settings, data, kwargs, tuning, store)
    record, left = recorder(chosen.package, info, channel), chosen.harvest(data.sample)
    rows = len(data.train.x), len(data.validation.x) if data.validation else 0
    guards = Guards.of(chosen.package, info, settings, manifest.seed, rows)
    callbacks = [*guards.callbacks, record, *([left] if left else [])]
    record.skips_nan = settings.get("on_nan") == "skip"
    # Lightning believes each rank to be a node, whose first rank prepares.
    module.prepare_data_per_node = module.prepare_data_per_node and info.local_rank == 0
    with tempfile.TemporaryDirectory(prefix="sparkddp-rank-") as root:
        attached = Attached.of(chosen.package, arguments, info.rank, Path(root), settings["logs"])
        # The files are copied while the group is there: peers of a rank that failed still wait, and it can tell what happened.
        with process_group(info, store, chosen.hardware.backend), attached.kept():
            trainer = build_trainer(arguments, chosen, info, callbacks, root, attached)
            with guards.explained(trainer):
                trainer.fit(module, record.loader(data.train), data.validation)
        metrics = numbers(trainer.callback_metrics)
        epochs = trainer.current_epoch
    report = _report(info, chosen, data, record, started)
    if info.rank == 0:
        told = {"epochs": epochs, "metrics": metrics, "history": record.history, "tune": tune} | guards.told() | begun
        report |= told | attached.told() | {"logged": record.logged.to_json()}
        report |= {"class_module": type(module).__module__, "batch_size": settings["batch_size"]}
        state, predictions = _outcome(module, left, data.sample)
        report["model"] = trained.write(
            trained.Trained(module, kwargs, state, data.sample, predictions, told), manifest, settings
        )
    return report


def _tuned(
    settings: Mapping[str, Any], data: Data, kwargs: dict[str, Any], tuning: Tuning, store: Any
) -> tuple[Mapping[str, Any], Data, dict[str, Any], dict[str, Any]]:
    """Settings, data and the model's arguments with what tuning found, and what it found: {} where nothing was asked for."""
    if not settings.get("tune"):
        return settings, data, kwargs, {}
    result = found(tuning, settings["tune"], store)
    kwargs = use(tuning, result, kwargs)
    if "batch_size" in result:
        settings = {**settings, "batch_size": result["batch_size"]["suggestion"]}
        data = data.in_batches(settings["batch_size"])
    return settings, data, kwargs, result


def _outcome(module: Any, left: Any, sample: Any) -> tuple[Mapping[str, Any], Any]:
    """The whole model's state and its answers on the sample."""
    if left:
        return left.state, left.predictions
    module = module.cpu()
    return module.state_dict(), forward(module, sample)


def _data(manifest: Manifest, settings: Mapping[str, Any], info: RankInfo, dtype: torch.dtype) -> Data:
    columns = [*settings["features"], settings["target"]]

    def load(split: str, seed: int | None) -> tuple[RankLoader, list[int]]:
        shares = shares_for(manifest, split, info.world_size)
        rows = rows_of(shares)
        table = read_share(manifest, settings["manifest"], shares[info.rank], columns)
        x, y = tensors(table, settings["features"], settings["target"], dtype, manifest.encoders)
        return RankLoader(x, y, steps(rows, settings["batch_size"]), seed, info.rank), rows

    train, rank_rows = load(TRAIN, manifest.seed)
    validation, validation_rows = load(VALIDATION, None) if manifest.rows(VALIDATION) else (None, [])
    return Data(train, validation, rank_rows, validation_rows, sample_rows((validation or train).x, PARITY_ROWS))


def _report(info: RankInfo, chosen: Seams, data: Data, record: Any, started: float) -> dict[str, Any]:
    return {
        "rank": info.rank,
        "host": info.host,
        "local_rank": info.local_rank,
        "node_rank": info.node_rank,
        "gpus": list(info.gpus),
        "threads": info.threads,
        "interface": info.interface,
        **chosen.told(),
        "rows": data.rank_rows[info.rank],
        "steps": len(data.train),
        "first_step_at": record.first_step_at,
        **record.figures(),
        "seconds": round(time.monotonic() - started, 3),
    }

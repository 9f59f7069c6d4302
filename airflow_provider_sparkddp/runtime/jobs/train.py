"""Trains on the partitions of a manifest, one barrier task a rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.launch import Launch, launch
from airflow_provider_sparkddp.runtime.data.shards import shares_for
from airflow_provider_sparkddp.runtime.jobs.cluster import cores, prove_shared, require_slots
from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome, table
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.manifests import TRAIN, VALIDATION, Manifest, require_trainable, rows_of
from airflow_provider_sparkddp.spec.ports import ports
from airflow_provider_sparkddp.storage.leases import lease
from airflow_provider_sparkddp.storage.manifests import read_manifest

RANK_FUNCTION = "airflow_provider_sparkddp.runtime.training.rank:train_rank"


def run(spark: Any, job: Job, still_wanted: Callable[[], None]) -> Outcome:
    """Check what can be checked in seconds, then launch the ranks.

    Raises:
        SparkDDPError: codes 104, 202 to 209, 213, 302, 303, 307, and 311 and 401 to 409 from a rank.
    """
    with lease(job.settings["manifest"], job.nonce, job.label):
        return _run(spark, job, still_wanted)


def _run(spark: Any, job: Job, still_wanted: Callable[[], None]) -> Outcome:
    outcome, settings = Outcome(), job.settings
    manifest = read_manifest(settings["manifest"])
    roles = dict.fromkeys(settings["features"], "features") | {settings["target"]: "target"}
    require_trainable(manifest, roles)
    _require_target(manifest, settings["target"])
    world_size = (settings["num_nodes"] or manifest.num_nodes) * (settings["devices"] or manifest.devices)
    shares = shares_for(manifest, TRAIN, world_size)
    if manifest.rows(VALIDATION):
        shares_for(manifest, VALIDATION, world_size)
    with outcome.phase("wait for slots"):
        require_slots(spark, world_size, settings["executors_timeout"])
    with outcome.phase("check storage"):
        prove_shared(spark, job)
    of_ranks = {
        "rank_rows": rows_of(shares),
        "rank_bytes": manifest.bytes_of(shares),
        "world_size": world_size,
    }
    with outcome.phase("train"):
        work = Launch(
            function=RANK_FUNCTION,
            settings=_rank_settings(job, of_ranks),
            failures=paths.join(job.directory, paths.FAILURES),
            cores=cores(spark, settings["threads_per_rank"]),
            ports=ports(settings["port_range"]) if settings["port_range"] else None,
        )
        reports = launch(spark, work, world_size)
    still_wanted()
    outcome.values = _values(job, reports, of_ranks)
    outcome.summary = _summary(reports, of_ranks, settings)
    return outcome


def _require_target(manifest: Manifest, name: str) -> None:
    """One raw number a row: y has the shape (rows,), and a prediction the target's own units."""
    column = manifest.column(name)
    if name in manifest.encoders:
        kind = manifest.encoders[name]["kind"]
        raise SparkDDPError(
            "SDDP-213",
            f"target={name!r} is encoded by {kind!r} in the partitions: predictions would not be in its own units.",
            f"Leave {name!r} out of encode and partition again; scale it inside the model if it needs scaling.",
        )
    if column is not None and column.length is not None:
        raise SparkDDPError(
            "SDDP-205",
            f"target column {name!r} is an array of {column.length} numbers; a target is one number a row.",
            "Make a column of the one to predict, in the source or by an expression in columns.",
        )


def _rank_settings(job: Job, of_ranks: Mapping[str, Any]) -> dict[str, Any]:
    names = ("port_range", "manifest", "model", "model_kwargs", "alias", "features", "target", "batch_size", "trainer")
    return {
        **{name: job.settings[name] for name in names},
        **of_ranks,
        "progress": paths.join(job.directory, paths.PROGRESS),
        "model_folder": paths.join(job.directory, paths.MODEL),
    }


def _values(job: Job, reports: list[dict[str, Any]], of_ranks: Mapping[str, Any]) -> dict[str, Any]:
    first, world_size = reports[0], of_ranks["world_size"]
    history = first["history"]
    return {
        "model": paths.join(job.directory, paths.MODEL),
        "alias": job.settings["alias"],
        "metrics": first["metrics"],
        "epochs": first["epochs"],
        "losses": [entry["loss"] for entry in history][-100:],
        "world_size": world_size,
        "batch_size": job.settings["batch_size"],
        "global_batch_size": job.settings["batch_size"] * world_size,
        "rows_per_second": history[-1]["rows_per_second"] if history else None,
        "first_step_at": first["first_step_at"],
        "accelerator": first["accelerator"],
        "strategy": first["strategy"],
        "precision": first["precision"],
        "class_module": first["class_module"],
        "sha256": first["model"]["sha256"],
        "rows": of_ranks["rank_rows"] if world_size <= 500 else [],
    }


def _summary(reports: list[dict[str, Any]], of_ranks: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    first, world_size = reports[0], of_ranks["world_size"]
    ranks = [
        [
            r["rank"],
            r["host"],
            ",".join(r["gpus"]) or r["accelerator"],
            r["threads"],
            r["rows"],
            of_ranks["rank_bytes"][i],
            r["steps"],
        ]
        for i, r in enumerate(reports[:50])
    ]
    # What a model logs as its loss is the loss that stands there already.
    names = sorted({name for entry in first["history"] for name in entry["metrics"]} - {"loss"})
    epochs = [
        [entry["epoch"] + 1, entry["loss"], *(entry["metrics"].get(name) for name in names), entry["rows_per_second"]]
        for entry in first["history"][-20:]
    ]
    return [
        f"{world_size} ranks, {first['strategy']}, {first['precision']}, batch {settings['batch_size']:,} a rank, "
        f"{settings['batch_size'] * world_size:,} in all",
        *table(["rank", "host", "device", "threads", "rows", "bytes", "steps"], ranks),
        *table(["epoch", "loss", *names, "rows/s"], epochs),
    ]

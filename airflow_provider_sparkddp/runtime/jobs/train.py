"""Trains on the partitions of a manifest, one barrier task a rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.launch import Launch, launch
from airflow_provider_sparkddp.runtime.data.shards import shares_for
from airflow_provider_sparkddp.runtime.jobs import train_summary
from airflow_provider_sparkddp.runtime.jobs.cluster import cores, prove_shared, require_slots
from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome
from airflow_provider_sparkddp.runtime.training import start
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.checks.train import require_validation
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
        SparkDDPError: codes 101, 104, 202 to 209, 213, 302, 303, 307, 501 and 506, and 103, 311, 312, 401 to 415 and 503 from a
            rank.
    """
    with lease(job.settings["manifest"], job.nonce, job.label):
        return _run(spark, job, still_wanted)


def _run(spark: Any, job: Job, still_wanted: Callable[[], None]) -> Outcome:
    outcome, settings = Outcome(), job.settings
    manifest = read_manifest(settings["manifest"])
    roles = dict.fromkeys(settings["features"], "features") | {settings["target"]: "target"}
    require_trainable(manifest, roles)
    _require_target(manifest, settings["target"])
    require_validation(settings, manifest.rows(VALIDATION))
    world_size = (settings["num_nodes"] or manifest.num_nodes) * (settings["devices"] or manifest.devices)
    shares = shares_for(manifest, TRAIN, world_size)
    if manifest.rows(VALIDATION):
        shares_for(manifest, VALIDATION, world_size)
    begins = start.identify(settings.get("init_from"), settings, manifest)
    with outcome.phase("wait for slots"):
        require_slots(spark, world_size, settings["executors_timeout"], settings["ranks_per_task"])
    with outcome.phase("check storage"):
        prove_shared(spark, job)
    of_ranks = {
        "rank_rows": rows_of(shares),
        "rank_bytes": manifest.bytes_of(shares),
        "world_size": world_size,
        "init_from": begins,
    }
    print(f"sparkddp: logs of the ranks: {paths.join(job.directory, paths.LOGS)}", flush=True)
    with outcome.phase("train"):
        work = Launch(
            function=RANK_FUNCTION,
            settings=_rank_settings(job, of_ranks),
            failures=paths.join(job.directory, paths.FAILURES),
            cores=cores(spark, settings["threads_per_rank"]),
            ranks_per_task=settings["ranks_per_task"],
            ports=ports(settings["port_range"]) if settings["port_range"] else None,
        )
        reports = launch(spark, work, world_size)
    still_wanted()
    outcome.values = train_summary.values(job, reports, of_ranks)
    outcome.summary = train_summary.summary(job, reports, of_ranks)
    outcome.report = train_summary.report(job, reports)
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
    guards = ("early_stopping", "best_weights", "on_nan")
    names = (
        "port_range",
        "manifest",
        "model",
        "model_kwargs",
        "alias",
        "features",
        "target",
        "batch_size",
        "trainer",
        "tune",
    )
    return {
        **{name: job.settings[name] for name in (*names, *guards)},
        **of_ranks,
        "progress": paths.join(job.directory, paths.PROGRESS),
        "logs": paths.join(job.directory, paths.LOGS),
        "model_folder": paths.join(job.directory, paths.MODEL),
    }

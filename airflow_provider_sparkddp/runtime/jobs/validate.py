"""Loads the exported model in a fresh process, predicts the held-out rows, and says whether it holds what it promised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome, table
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.manifests import TEST, VALIDATION, Manifest, require_trainable
from airflow_provider_sparkddp.storage.leases import lease
from airflow_provider_sparkddp.storage.manifests import read_manifest


def run(spark: Any, job: Job, still_wanted: Callable[[], None]) -> Outcome:
    """Raises SparkDDPError SDDP-505 naming each failed check, and codes 204 to 209, 501 to 504."""
    with lease(job.settings["data"], job.nonce, job.label):
        return _run(job)


def _run(job: Job) -> Outcome:
    from airflow_provider_sparkddp.runtime.models.load import load_model
    from airflow_provider_sparkddp.runtime.validation.evaluate import evaluate

    outcome, settings = Outcome(), job.settings
    manifest = read_manifest(settings["data"])
    split = _split(manifest, settings["data"])
    with outcome.phase("load model"):
        model = load_model(settings["model"], settings["trusted_modules"])
    gates = settings["metrics"] or {}
    _require_usable(model, manifest, gates)
    with outcome.phase("predict and check"):
        verdict = evaluate(model, manifest, settings["data"], split, gates, settings["alias"])
    checks = [{"name": c.name, "passed": c.passed, "detail": c.detail} for c in verdict.checks]
    outcome.summary = _summary(model, settings["model"], verdict, split)
    if not verdict.passed:
        failed = "; ".join(f"{c['name']} ({c['detail']})" for c in checks if not c["passed"])
        raise SparkDDPError(
            "SDDP-505",
            f"model {model.alias!r} failed on the {verdict.rows:,} rows of the {split} split: {failed}.",
            "The exported model stays where it is; don't use it. Train longer, mend the data, or correct the gate.",
            {"summary": outcome.summary, "checks": checks},
        )
    outcome.values = {
        "verdict": "passed",
        "alias": model.alias,
        "model": settings["model"],
        "rows": verdict.rows,
        "split": split,
        "metrics": verdict.metrics,
        "checks": checks,
    }
    return outcome


def _split(manifest: Manifest, uri: str) -> str:
    """Which rows judge: those of `test`, which no training ever saw; else those that early stopping may have seen."""
    for split in (TEST, VALIDATION):
        if manifest.rows(split):
            return split
    raise SparkDDPError(
        "SDDP-202",
        f"{uri} holds no test and no validation rows to predict.",
        "Partition with test=0.1 or validation=0.1 (or 'after', or 'column'), and train on that.",
    )


def _require_usable(model: Any, manifest: Manifest, gates: Mapping[str, Any]) -> None:
    """The features go through the model's own encoders, whatever the manifest's; target and baselines are raw numbers."""
    require_trainable(replace(manifest, encoders=model.description.encoders), dict.fromkeys(model.features, "features"))
    raw = {model.target: "target"}
    raw |= {str(gate["baseline"]): f"metrics[{name!r}]" for name, gate in gates.items() if "baseline" in gate}
    require_trainable(replace(manifest, encoders={}), raw)
    for name, role in raw.items():
        column = manifest.column(name)
        if column is not None and column.length is not None:
            raise SparkDDPError(
                "SDDP-205",
                f"{role} column {name!r} is an array of {column.length} numbers; a metric compares one number a row.",
                "Name a column of single numbers.",
            )


def _summary(model: Any, where: str, verdict: Any, split: str) -> list[str]:
    """The whole line at a glance: ranks, epochs, metrics beside their baselines, the alias, the place, the verdict."""
    trained: Mapping[str, Any] = model.description.training
    ranks = list(zip(range(50), trained["rank_rows"], trained["rank_bytes"], strict=False))
    epochs = [[entry["epoch"] + 1, entry["loss"], entry["rows_per_second"]] for entry in trained["history"][-20:]]
    figures = [[name, f.get("value"), f.get("baseline"), f.get("offset")] for name, f in verdict.metrics.items()]
    checks = [["ok" if c.passed else "FAILED", c.name, c.detail] for c in verdict.checks]
    return [
        *table(["rank", "training rows", "bytes"], [list(row) for row in ranks]),
        "",
        *table(["epoch", "loss", "rows/s"], epochs),
        "",
        *(table(["metric", "model", "baseline", "baseline's offset"], figures) if figures else []),
        "",
        f"held-out rows   {verdict.rows:,} of the {split} split",
        f"alias           {model.alias}",
        f"model           {where}",
        *(f"{state:<16}{name}: {detail}" for state, name, detail in checks),
        f"verdict         {'PASSED' if verdict.passed else 'FAILED'}",
    ]

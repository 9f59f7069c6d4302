"""Loads the exported model in a fresh process, predicts the held-out rows, and says whether it holds what it promised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome, table
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.manifests import VALIDATION, Manifest, require_trainable
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
    manifest = _manifest(settings["data"])
    with outcome.phase("load model"):
        model = load_model(settings["model"], settings["trusted_modules"])
    gates = settings["metrics"] or {}
    roles = dict.fromkeys(model.features, "features") | {model.target: "target"}
    roles |= {str(gate["baseline"]): f"metrics[{name!r}]" for name, gate in gates.items() if "baseline" in gate}
    require_trainable(manifest, roles)
    with outcome.phase("predict and check"):
        verdict = evaluate(model, manifest, settings["data"], gates, settings["alias"])
    checks = [{"name": c.name, "passed": c.passed, "detail": c.detail} for c in verdict.checks]
    outcome.summary = _summary(model, settings["model"], verdict)
    if not verdict.passed:
        failed = "; ".join(f"{c['name']} ({c['detail']})" for c in checks if not c["passed"])
        raise SparkDDPError(
            "SDDP-505",
            f"model {model.alias!r} failed: {failed}.",
            "The exported model stays where it is; don't use it. Train longer, mend the data, or correct the gate.",
            {"summary": outcome.summary, "checks": checks},
        )
    outcome.values = {
        "verdict": "passed",
        "alias": model.alias,
        "model": settings["model"],
        "rows": verdict.rows,
        "metrics": verdict.metrics,
        "checks": checks,
    }
    return outcome


def _manifest(uri: str) -> Manifest:
    manifest = read_manifest(uri)
    if not manifest.rows(VALIDATION):
        raise SparkDDPError(
            "SDDP-202",
            f"{uri} holds no validation rows to predict.",
            "Partition with validation=0.1 (or 'after', or 'column'), and train on that.",
        )
    return manifest


def _summary(model: Any, where: str, verdict: Any) -> list[str]:
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
        f"held-out rows   {verdict.rows:,}",
        f"alias           {model.alias}",
        f"model           {where}",
        *(f"{state:<16}{name}: {detail}" for state, name, detail in checks),
        f"verdict         {'PASSED' if verdict.passed else 'FAILED'}",
    ]

"""Puts a training's model where it is to stay, free of its trainer, its alias kept. Runs in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome
from airflow_provider_sparkddp.spec.jobs import Job


def run(spark: Any, job: Job, still_wanted: Callable[[], None]) -> Outcome:
    """Raises SparkDDPError codes 501 to 503, 401 to 403 and 301."""
    from airflow_provider_sparkddp.runtime.models.export import export

    outcome, settings = Outcome(), job.settings
    with outcome.phase("export"):
        written = export(settings["model"], settings["destination"], settings["trusted_modules"], still_wanted)
    outcome.values = {"model": settings["destination"], "formats": settings["formats"], **written}
    outcome.summary = [
        f"model {written['alias']!r}: {written['bytes']:,} bytes in {settings['destination']}",
        f"sha256 {written['sha256']}",
    ]
    return outcome

"""Ten small trainings in one Spark session: from submit to the first step, the tenth against the second."""

from __future__ import annotations

import statistics
import time
import uuid
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.runtime.jobs import partition, train
from airflow_provider_sparkddp.spec import jobs
from airflow_provider_sparkddp.spec.jobs import Job
from benchmarks.measure import ratio
from benchmarks.partition_job import still_wanted
from benchmarks.record import Record, Table, Target
from benchmarks.session import java_version, settle, spark_session
from benchmarks.setup import Setup

ROWS, SMOKE_ROWS = 20_000, 200
RANKS, TRAININGS = 2, 10
# The exchange of the ranks is looked for once a second: the tenth may meet it a little later or earlier than the second.
LIMIT = 1.1
SQL = "SELECT a, b, 2 * a - b AS y FROM (SELECT rand(1) AS a, rand(2) AS b FROM range(0, {rows}, 1, 2))"


def run(setup: Setup) -> Record:
    rounds = []
    for number in range(setup.repeat):
        # A session for each round: the first training of a session is what the others are not compared with.
        with spark_session(setup) as spark:
            rounds.append(_ten(spark, setup, setup.scratch / f"round-{number}"))
            java = java_version(spark)
        setup.tell(f"round {number + 1} of {setup.repeat}: {_cells(rounds[-1])}")
    second, tenth = ([starts[index] for starts in rounds] for index in (1, TRAININGS - 1))
    rows = [(f"training {n + 1}", statistics.median(s[n] for s in rounds)) for n in range(TRAININGS)]
    return Record(
        title=f"{TRAININGS} trainings of {RANKS} ranks in one session",
        conditions=setup.conditions() | {"ranks": RANKS, "trainings": TRAININGS},
        targets=[Target("submit to first step, the tenth / the second", ratio(tenth, second), LIMIT)],
        tables=[Table("Submit to first step, median seconds over the rounds", ("which", "s"), rows)],
        notes=[f"Round {n}, seconds: {_cells(starts)}." for n, starts in enumerate(rounds, 1)],
        java=java,
    )


def _ten(spark: Any, setup: Setup, folder: Path) -> list[float]:
    """Seconds from submit to the first step of each training, in the order in which they ran."""
    rows = {"source": {"sql": SQL.format(rows=setup.rows)}, "num_nodes": RANKS, "validation": None}
    manifest = partition.run(spark, _job(jobs.PARTITION, folder / "data", rows), still_wanted).values["manifest"]
    starts = []
    for number in range(TRAININGS):
        settle(spark)
        started = time.time()
        values = train.run(spark, _training(folder / f"training-{number}", manifest), still_wanted).values
        starts.append(values["first_step_at"] - started)
    return starts


def _training(folder: Path, manifest: str) -> Job:
    asked = {"model": "benchmarks.steps:line", "features": ["a", "b"], "target": "y", "trainer": {"max_epochs": 1}}
    job = _job(jobs.TRAIN, folder, {"partitions": manifest, **asked})
    settings = {**job.settings, "manifest": manifest, "model_kwargs": {}, "alias": "line"}
    return Job(job.kind, job.nonce, job.directory, job.label, job.code, settings)


def _job(kind: str, folder: Path, settings: dict[str, Any]) -> Job:
    checked = jobs.check(kind, {**jobs.defaults(kind), **settings})
    return Job(kind, uuid.uuid4().hex[:12], f"file://{folder}", "benchmark", (), checked)


def _cells(starts: list[float]) -> str:
    return " ".join(f"{each:.2f}" for each in starts)

"""Runs one job: `sparkddp_main.py job.json`. Airflow's worker starts it; you may start it by hand to replay a job.

    python -m airflow_provider_sparkddp.runtime.entry.sparkddp_main file:///…/job.json --master 'local[2]'

replays it in a folder beside the original, prints what it prints, and writes its own result.json there.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import threading
import traceback
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime import code, secrets
from airflow_provider_sparkddp.runtime.jobs.cluster import session
from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome
from airflow_provider_sparkddp.spec import jobs, paths
from airflow_provider_sparkddp.spec.errors import Failure, SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.results import JobResult
from airflow_provider_sparkddp.spec.secrets import from_line

Run = Callable[[Any, Job, Callable[[], None]], Outcome]


def _run_of(kind: str) -> Run:
    """Imported when it runs: a job loads the packages of its own kind, and no other's."""

    def run(spark: Any, job: Job, still_wanted: Callable[[], None]) -> Outcome:
        outcome: Outcome = importlib.import_module(f"airflow_provider_sparkddp.runtime.jobs.{kind}").run(
            spark, job, still_wanted
        )
        return outcome

    return run


RUNS: dict[str, Run] = {kind: _run_of(kind) for kind in (jobs.PARTITION, jobs.TRAIN, jobs.EXPORT, jobs.VALIDATE)}
ON_SPARK = (jobs.PARTITION, jobs.TRAIN)
ORPHANED = 70


class Parent:
    """The Airflow task that asked for the job: while it lives it holds the other end of a pipe.

    A driver must not outlive it: nobody would read its result, and a retry would train beside it.

    Attributes:
        secrets: what the parent left in the pipe for this process alone.
    """

    def __init__(self, pipe: str | None) -> None:
        self.gone = threading.Event()
        self.secrets: dict[str, str] = {}
        if pipe:
            handle = self._open(pipe)
            threading.Thread(target=self._watch, args=(handle,), name="sparkddp-parent", daemon=True).start()

    def _open(self, pipe: str) -> int:
        try:
            # Opening must not wait for a writer: a parent that died before this process was up would never be missed.
            handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            os.set_blocking(handle, True)
            line = b""
            # The line was there before this process was started; without it there is no parent any more.
            while not line.endswith(b"\n"):
                line += os.read(handle, 1) or self._end()
        except OSError:
            self._end()  # the pipe is gone already, and so is the parent
        self.secrets = from_line(line)
        return handle

    def _watch(self, handle: int) -> None:
        while os.read(handle, 1):
            pass
        self._end()

    def _end(self) -> NoReturn:
        self.gone.set()
        try:
            print(
                "sparkddp: the Airflow task is gone; this job ends and publishes nothing", file=sys.stderr, flush=True
            )
        finally:
            # Standard error may have gone with the parent. At once, and without cleaning up: a thread in a collective or in
            # Java's code would not listen to an exception.
            os._exit(ORPHANED)

    def require(self) -> None:
        """Raises SparkDDPError SDDP-309 once the parent is gone."""
        if self.gone.is_set():
            raise SparkDDPError(
                "SDDP-309", "the Airflow task that asked for this job is gone.", "Nothing was published."
            )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0: done; 1: the job failed, result.json says why; 2: there was no job to run."""
    arguments = _parser().parse_args(argv)
    uri = arguments.job if "://" in arguments.job else Path(arguments.job).absolute().as_uri()
    parent = Parent(arguments.parent_pipe)
    secrets.give(parent.secrets if arguments.parent_pipe else secrets.taken_from(os.environ))
    try:
        job = Job.from_text(storage.read_text(paths.absolute_uri(uri, "job")), uri)
    except FileNotFoundError:
        print(f"sparkddp: there is no job at {uri}; the log of the Airflow task names its job.json", file=sys.stderr)
        return 2
    except SparkDDPError as error:
        print(f"sparkddp: {error}", file=sys.stderr)
        return 2
    if not arguments.parent_pipe:
        job = _replayed(job)
        print(f"sparkddp: replaying {job.label} into {job.directory}", flush=True)
    result = _redacted(_run(job, parent, arguments.master))
    _tell(result, replay=not arguments.parent_pipe)
    parent.require()
    storage.write_text(paths.join(job.directory, paths.RESULT), result.to_text())
    return 1 if result.failure else 0


def _tell(result: JobResult, replay: bool) -> None:
    """What went wrong, in one line; in a replay also what Airflow's side would log: the summary and the traceback."""
    if replay:
        print("\n".join(["", *result.summary, ""]), flush=True)
    if result.failure and replay:
        print(result.failure.details.get("traceback", ""), file=sys.stderr)
    if result.failure:
        print(f"sparkddp: {result.failure.error()}", file=sys.stderr, flush=True)


def _redacted(result: JobResult) -> JobResult:
    """Without the secrets that a database's or Spark's own words may hold. The values are ours: paths and figures."""
    failure = result.failure and Failure(**secrets.redacted(result.failure.to_json()))
    return replace(result, summary=tuple(secrets.redacted(result.summary)), failure=failure)


def _replayed(job: Job) -> Job:
    """The job, with everything that it writes in a new folder beside the original's, an export's destination too.

    A partition job runs as if nothing could be reused, and removes no other run's partitions.
    """
    folder = paths.join(job.directory, f"replay-{uuid.uuid4().hex[:8]}")
    moved = {"destination": paths.join(folder, paths.MODEL)} if job.kind == jobs.EXPORT else {}
    alone = {"reuse": False, "retention": None} if job.kind == jobs.PARTITION else {}
    return replace(job, directory=folder, settings={**job.settings, **moved, **alone})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sparkddp_main",
        description="Run one job of airflow-provider-sparkddp: partition, train, export or validate.",
        epilog="Without --parent-pipe this is a replay for debugging: everything is written to a new folder beside job.json.",
    )
    parser.add_argument("job", help="URI or path of the job.json that the Airflow task wrote (its log names it)")
    parser.add_argument("--master", help="Spark master for a replay, such as local[2]; default: what spark-submit sets")
    parser.add_argument("--parent-pipe", help=argparse.SUPPRESS)
    return parser


def _run(job: Job, parent: Parent, master: str | None) -> JobResult:
    """The job's result, also when it fails: the envelope is always written."""
    spark = None
    try:
        local = code.activate(job.code)
        spark = session(job.label, local, master) if job.kind in ON_SPARK else None
        if spark:
            print(
                f"sparkddp: Spark {spark.version} on {spark.sparkContext.master}, UI {spark.sparkContext.uiWebUrl}",
                flush=True,
            )
        outcome = RUNS[job.kind](spark, job, parent.require)
    except SparkDDPError as error:
        return JobResult(
            job.kind, job.nonce, summary=tuple(error.details.get("summary", ())), failure=Failure.of(error)
        )
    except Exception as error:
        unexpected = SparkDDPError(
            "SDDP-308",
            f"{type(error).__name__}: {error}",
            "The traceback stands in the log. If Spark is well, this is a fault of the provider: please report it.",
            {"traceback": traceback.format_exc()[-20_000:]},
        )
        return JobResult(job.kind, job.nonce, failure=Failure.of(unexpected))
    finally:
        if spark:
            spark.stop()
    return JobResult(
        job.kind, job.nonce, outcome.values, tuple(outcome.summary), outcome.seconds, report=outcome.report
    )


if __name__ == "__main__":
    sys.exit(main())

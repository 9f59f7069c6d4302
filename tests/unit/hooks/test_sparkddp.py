"""result.json under this try's nonce is the truth: not how the process ended, and no result of another try."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.hooks.bundle import CodeZip, provider_zip
from airflow_provider_sparkddp.hooks.sparkddp import SparkDDPHook
from airflow_provider_sparkddp.hooks.submitters.base import Submitter
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import Failure, SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.results import JobResult
from airflow_provider_sparkddp.spec.secrets import from_line
from tests.support.refusals import refused
from tests.support.samples import job

PROVIDER = CodeZip(b"zip", ("airflow_provider_sparkddp",))


class Runs(Submitter):
    """A place to run where the job is this function of the job's folder."""

    def __init__(self, work: Callable[[str], None], ended: str | None = None) -> None:
        self.work, self.ended, self.pipe = work, ended, ""

    def run(self, job_uri: str, parent_pipe: str) -> str | None:
        self.pipe = parent_pipe
        self.work(paths.parent(job_uri))
        return self.ended

    def cancel(self) -> None:
        self.ended = "cancelled"


def publishes(result: JobResult) -> Callable[[str], None]:
    return lambda folder: storage.write_text(paths.join(folder, paths.RESULT), result.to_text())


def reads_end(pipe: str) -> bool:
    """Whether a job that reads the pipe now is told that its task is gone."""
    handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(handle, 1) == b""
    except BlockingIOError:
        return False
    finally:
        os.close(handle)


@pytest.fixture
def planned(tmp_path: Path) -> Job:
    return job((tmp_path / "run" / "1-abc123").as_uri())


@pytest.fixture
def done(planned: Job) -> JobResult:
    return JobResult(planned.kind, planned.nonce, {"alias": "a"}, ("a line for a person",), {"train": 1.0})


def run(planned: Job, submitter: Submitter) -> JobResult:
    return SparkDDPHook().run(planned, PROVIDER, lambda zip_path: submitter)


def test_the_job_is_written_down_before_it_is_submitted(planned: Job, done: JobResult) -> None:
    found = []

    def work(folder: str) -> None:
        uri = paths.join(folder, paths.JOB)
        found.append(Job.from_text(storage.read_text(uri), uri))
        publishes(done)(folder)

    assert run(planned, Runs(work)) == done
    assert found == [replace(planned, settings=dict(planned.settings))]


def test_the_submitter_gets_the_providers_code_as_a_local_file(planned: Job, done: JobResult) -> None:
    made, seen = provider_zip(), []

    def make(zip_path: str) -> Submitter:
        seen.append((Path(zip_path).name, Path(zip_path).read_bytes()))
        return Runs(publishes(done))

    SparkDDPHook().run(planned, made, make)
    assert seen == [(made.name, made.data)]


def test_the_summary_reaches_the_log(planned: Job, done: JobResult, capfd: pytest.CaptureFixture[str]) -> None:
    run(planned, Runs(publishes(done)))
    logged = capfd.readouterr().out
    assert "a line for a person" in logged
    assert "train 1.0 s" in logged


def test_a_process_that_leaves_no_result_is_a_failure_that_says_how_it_ended(planned: Job) -> None:
    with refused("SDDP-304", "status 137"):
        run(planned, Runs(lambda folder: None, ended="status 137"))


def test_a_process_that_ends_well_without_a_result_is_a_failure_too(planned: Job) -> None:
    with refused("SDDP-304", "don't share the run directory"):
        run(planned, Runs(lambda folder: None))


def test_a_result_of_an_earlier_try_never_makes_a_crash_a_success(planned: Job, done: JobResult) -> None:
    with refused("SDDP-305", "'abc123'", "'earlier'"):
        run(planned, Runs(publishes(replace(done, nonce="earlier")), ended="status 1"))


def test_half_a_result_is_no_result(planned: Job, done: JobResult) -> None:
    def work(folder: str) -> None:
        storage.write_text(paths.join(folder, paths.RESULT), done.to_text()[:50])

    with refused("SDDP-306"):
        run(planned, Runs(work))


def test_the_jobs_own_failure_is_raised_with_all_that_it_says(planned: Job) -> None:
    error = SparkDDPError("SDDP-404", "rank 1 on host raised", "Mend it.", {"rank": 1})
    failed = JobResult(planned.kind, planned.nonce, failure=Failure.of(error))
    with pytest.raises(SparkDDPError) as caught:
        run(planned, Runs(publishes(failed), ended="status 1"))
    assert (str(caught.value), caught.value.details) == (str(error), {"rank": 1})


def test_a_whole_result_counts_although_the_process_ended_badly_later(
    planned: Job, done: JobResult, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(planned, Runs(publishes(done), ended="status 134")) == done
    assert "status 134" in capfd.readouterr().out


def test_a_cancelled_job_is_cancelled_and_lets_go_of_the_pipe(planned: Job, done: JobResult) -> None:
    hook, ends = SparkDDPHook(), []

    def work(folder: str) -> None:
        publishes(done)(folder)
        ends.append(reads_end(submitter.pipe))
        hook.cancel()
        ends.append(reads_end(submitter.pipe))

    submitter = Runs(work)
    with refused("SDDP-309", planned.label):
        hook.run(planned, PROVIDER, lambda zip_path: submitter)
    assert submitter.ended == "cancelled"
    assert ends == [False, True]


def test_the_jobs_secrets_wait_in_the_pipe_and_are_written_nowhere(planned: Job, done: JobResult) -> None:
    told = []

    def work(folder: str) -> None:
        publishes(done)(folder)
        with Path(submitter.pipe).open("rb") as pipe:
            told.append(from_line(pipe.readline()))

    submitter = Runs(work)
    SparkDDPHook().run(planned, PROVIDER, lambda zip_path: submitter, {"password": "hunter2"})
    assert told == [{"password": "hunter2"}]
    written = [path for path in Path(planned.directory.removeprefix("file://")).rglob("*") if path.is_file()]
    assert {path.name for path in written} == {"job.json", "result.json"}
    assert not [path for path in written if "hunter2" in path.read_text()]


def test_cancelling_when_nothing_runs_is_harmless() -> None:
    hook = SparkDDPHook()
    hook.cancel()
    hook.cancel()


def test_progress_is_told_while_the_job_runs(planned: Job, done: JobResult, capfd: pytest.CaptureFixture[str]) -> None:
    event = {"epoch": 1, "epochs": 2, "step": 3, "steps": 4, "metrics": {}, "rows_per_second": 5, "seconds": 6}

    def work(folder: str) -> None:
        storage.write_text(paths.join(folder, paths.PROGRESS, "000001.json"), json.dumps(event))
        publishes(done)(folder)

    run(planned, Runs(work))
    assert "epoch 1/2 · step 3/4" in capfd.readouterr().out

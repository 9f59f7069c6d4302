"""No orphans: a job whose Airflow task is gone, however it went, ends. Real processes, killed for real."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from airflow_provider_sparkddp.hooks.submitters.base import parent_pipe
from airflow_provider_sparkddp.runtime.entry.sparkddp_main import ORPHANED
from tests.support.refusals import refused

# What an Airflow task does: holds the pipe, says where it is, and waits for its job.
PARENT = """
import sys
from airflow_provider_sparkddp.hooks.submitters.base import parent_pipe
with parent_pipe() as pipe:
    print(pipe.path, flush=True)
    sys.stdin.read()
"""
# What a driver does: watches the pipe while it works.
JOB = """
import sys, threading
from airflow_provider_sparkddp.runtime.entry.sparkddp_main import Parent
parent = Parent(sys.argv[1])
print("working", flush=True)
threading.Event().wait(60)
"""
# A driver that says what it was given, and goes on waiting.
CONFIDANT = """
import json, sys, threading
from airflow_provider_sparkddp.runtime.entry.sparkddp_main import Parent
print(json.dumps(Parent(sys.argv[1]).secrets), flush=True)
threading.Event().wait(60)
"""
WITHIN = 10


@contextmanager
def running(source: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", source, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_job_ends_when_its_task_is_killed(end: signal.Signals) -> None:
    with running(PARENT) as parent, running(JOB, first_line(parent)) as job:
        assert first_line(job) == "working"
        parent.send_signal(end)
        assert job.wait(WITHIN) == ORPHANED
        assert job.stderr is not None
        assert "publishes nothing" in job.stderr.read()


def test_a_job_that_comes_up_after_its_task_was_killed_ends_too() -> None:
    with running(PARENT) as parent:
        path = first_line(parent)
        parent.kill()
        parent.wait(WITHIN)
        assert Path(path).exists(), "a killed task cleans nothing up"
        with running(JOB, path) as job:
            assert job.wait(WITHIN) == ORPHANED
    Path(path).unlink()
    Path(path).parent.rmdir()


def test_a_job_ends_when_its_task_lets_go() -> None:
    with parent_pipe() as pipe, running(JOB, pipe.path) as job:
        assert first_line(job) == "working"
        pipe.close()
        assert job.wait(WITHIN) == ORPHANED


def test_a_job_whose_pipe_is_gone_already_ends(tmp_path: Path) -> None:
    with running(JOB, str(tmp_path / "gone")) as job:
        assert job.wait(WITHIN) == ORPHANED


def test_a_child_of_the_task_does_not_hold_the_pipe_open() -> None:
    with parent_pipe() as pipe, running("import sys; print('up', flush=True); sys.stdin.read()") as other:
        assert first_line(other) == "up"
        with running(JOB, pipe.path) as job:
            assert first_line(job) == "working"
            pipe.close()
            assert job.wait(WITHIN) == ORPHANED


def test_a_job_is_given_the_secrets_and_then_waits_for_the_end() -> None:
    secrets = {"url": "jdbc:postgresql://host/db", "password": 'two\nlines, "quotes" and an ü' + "x" * 8_000}
    with parent_pipe(secrets) as pipe, running(CONFIDANT, pipe.path) as job:
        assert json.loads(first_line(job)) == secrets
        assert job.poll() is None
        pipe.close()
        assert job.wait(WITHIN) == ORPHANED


def test_a_job_without_secrets_is_given_none() -> None:
    with parent_pipe() as pipe, running(CONFIDANT, pipe.path) as job:
        assert json.loads(first_line(job)) == {}


def test_a_job_that_finds_the_end_before_any_secrets_ends() -> None:
    with parent_pipe({"password": "hunter2"}) as pipe:
        pipe.close()
        with running(CONFIDANT, pipe.path) as job:
            assert job.wait(WITHIN) == ORPHANED
            assert first_line(job) == ""


def test_more_than_a_pipe_holds_is_refused_at_once() -> None:
    with refused("SDDP-112", "more than a pipe holds"), parent_pipe({"url": "x" * (1 << 20)}):
        pass


def test_the_pipe_is_private_and_gone_afterwards() -> None:
    with parent_pipe() as pipe:
        assert Path(pipe.path).is_fifo()
        assert Path(pipe.path).stat().st_mode & 0o077 == 0
        pipe.close()
        pipe.close()  # from a signal handler and at the end: harmless twice
    assert not Path(pipe.path).parent.exists()

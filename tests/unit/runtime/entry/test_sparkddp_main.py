"""The entry ends with a status that says what happened, and leaves its result where it is looked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.hooks.submitters.base import parent_pipe
from airflow_provider_sparkddp.runtime import secrets
from airflow_provider_sparkddp.runtime.entry import sparkddp_main
from airflow_provider_sparkddp.runtime.entry.sparkddp_main import Parent, main
from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome
from airflow_provider_sparkddp.spec import wire
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.results import JobResult
from tests.support.samples import job


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture(autouse=True)
def no_secrets_kept() -> Iterator[None]:
    yield
    secrets.give({})


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """job.json of an export, in its try's folder."""
    folder = tmp_path / "1-abc123"
    storage.write_text((folder / "job.json").as_uri(), job(folder.as_uri()).to_text())
    return folder / "job.json"


def runs(monkeypatch: pytest.MonkeyPatch, outcome: Outcome | Exception) -> None:
    """The export does no more than to end like this."""

    def run(spark: Any, planned: Any, still_wanted: Any) -> Outcome:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setitem(sparkddp_main.RUNS, "export", run)


def result(path: Path) -> JobResult:
    return JobResult.from_text(path.read_text(), str(path), "abc123")


@pytest.mark.parametrize("text", [None, "{", wire.pack("manifest", {})], ids=["missing", "cut", "another kind"])
def test_without_a_job_there_is_nothing_to_run(
    tmp_path: Path, text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / "job.json").write_text(text)
    assert main([str(tmp_path / "job.json")]) == 2
    assert "job.json" in capsys.readouterr().err
    assert not list(tmp_path.rglob("result.json"))


def test_a_job_of_an_airflow_task_leaves_its_result_in_its_own_folder(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(monkeypatch, Outcome({"alias": "a"}, ["a line"]))
    held = Parent(None)
    monkeypatch.setattr(sparkddp_main, "Parent", lambda pipe: held)
    with parent_pipe() as pipe:
        assert main([written.as_uri(), "--parent-pipe", pipe.path]) == 0
    assert result(written.parent / "result.json") == JobResult("export", "abc123", {"alias": "a"}, ("a line",))


def test_a_replay_writes_beside_the_original_and_never_over_it(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs(monkeypatch, Outcome({}, ["a line for a person"]))
    assert main([str(written)]) == 0
    assert not (written.parent / "result.json").exists()
    [replayed] = written.parent.glob("replay-*/result.json")
    assert result(replayed).summary == ("a line for a person",)
    assert "a line for a person" in capsys.readouterr().out


def test_a_replayed_partition_reuses_nothing_and_removes_no_other_runs_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = replace(job(tmp_path.as_uri(), "partition"), settings={"reuse": True, "retention": 7.0, "seed": 3})
    (tmp_path / "job.json").write_text(planned.to_text())
    ran: list[Job] = []
    monkeypatch.setattr(sparkddp_main, "_run", lambda job, *_: ran.append(job) or JobResult("partition", job.nonce))
    assert main([str(tmp_path / "job.json")]) == 0
    assert ran[0].settings == {"reuse": False, "retention": None, "seed": 3}


def test_a_failure_is_a_whole_result_and_status_one(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(monkeypatch, SparkDDPError("SDDP-501", "no model", "Export again.", {"summary": ["what was found"]}))
    assert main([str(written)]) == 1
    [left] = written.parent.glob("replay-*/result.json")
    failure = result(left).failure
    assert failure is not None
    assert (failure.code, failure.message, result(left).summary) == ("SDDP-501", "no model", ("what was found",))


def test_what_nobody_foresaw_is_a_failure_with_its_traceback(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs(monkeypatch, ZeroDivisionError("unforeseen"))
    assert main([str(written)]) == 1
    [left] = written.parent.glob("replay-*/result.json")
    failure = result(left).failure
    assert failure is not None
    assert failure.code == "SDDP-308"
    assert "ZeroDivisionError: unforeseen" in failure.message
    assert "in run" in capsys.readouterr().err


FAILURES: dict[str, Exception] = {
    "told": SparkDDPError(
        "SDDP-203", "no hunter2 here", "Not hunter2.", {"summary": ["of hunter2"], "traceback": "hunter2"}
    ),
    "unforeseen": RuntimeError("jdbc://me:hunter2@host"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_no_secret_stands_in_the_result_or_in_what_is_printed(
    failure: str, written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs(monkeypatch, FAILURES[failure])
    monkeypatch.setenv("SPARKDDP_JDBC_PASSWORD", "hunter2")
    assert main([str(written)]) == 1
    [left] = written.parent.glob("replay-*/result.json")
    told = capsys.readouterr()
    for text in (left.read_text(), told.out + told.err):
        assert "hunter2" not in text
        assert "***" in text


def test_a_summary_holds_no_secret_and_the_values_stay_what_they_are(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(monkeypatch, Outcome({"manifest": "file:///hunter2/manifest.json"}, ["hunter2 rows"]))
    monkeypatch.setenv("SPARKDDP_JDBC_PASSWORD", "hunter2")
    assert main([str(written)]) == 0
    [left] = written.parent.glob("replay-*/result.json")
    assert result(left).summary == ("*** rows",)
    assert result(left).values == {"manifest": "file:///hunter2/manifest.json"}


def test_only_a_replay_takes_secrets_from_its_environment(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[str | None] = []

    def run(spark: Any, planned: Any, still_wanted: Any) -> Outcome:
        known.append(secrets.given("url"))
        return Outcome()

    monkeypatch.setitem(sparkddp_main.RUNS, "export", run)
    monkeypatch.setenv("SPARKDDP_JDBC_URL", "jdbc:of:the environment")
    held = Parent(None)
    held.secrets = {"url": "jdbc:of:the task"}
    monkeypatch.setattr(sparkddp_main, "Parent", lambda pipe: held)
    main([written.as_uri(), "--parent-pipe", "unused"])
    main([str(written)])
    assert known == ["jdbc:of:the task", "jdbc:of:the environment"]


def test_a_job_whose_task_is_gone_publishes_nothing(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(monkeypatch, Outcome({"alias": "a"}))
    orphan = Parent(None)
    orphan.gone.set()
    monkeypatch.setattr(sparkddp_main, "Parent", lambda pipe: orphan)
    with pytest.raises(SparkDDPError, match="SDDP-309"):
        main([written.as_uri(), "--parent-pipe", "unused"])
    assert not (written.parent / "result.json").exists()

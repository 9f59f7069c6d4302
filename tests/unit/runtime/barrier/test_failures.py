"""Of many ranks' failures the cause is told: the first that isn't only another one's echo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from torch.distributed import DistBackendError, DistNetworkError

from airflow_provider_sparkddp.runtime.barrier import failures
from airflow_provider_sparkddp.runtime.barrier.failures import cause, leave_failure
from airflow_provider_sparkddp.spec.errors import SparkDDPError

SPARK_SAYS = RuntimeError("Job aborted due to stage failure:\n  Could not recover from a failed barrier ResultStage")
ECHOES = [
    RuntimeError("[../gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.1]:4321"),
    RuntimeError("NCCL error: remote process exited or there was a network error"),
    DistNetworkError("The client socket has failed to connect to any network address"),
    DistBackendError("NCCL communicator was aborted on rank 1"),
]
# Of the user's own making, though the words are alike.
NO_ECHOES = [
    ConnectionRefusedError("[Errno 111] Connection refused"),
    RuntimeError("the feature store said: connection refused"),
    ValueError("unknown backend gloo"),
]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return (tmp_path / "failures").as_uri()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures come one second after another, in the order in which they are planted."""
    ticks = iter(range(1000, 2000))

    class Clock:
        time = staticmethod(lambda: float(next(ticks)))

    monkeypatch.setattr(failures, "time", Clock)


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def test_the_cause_carries_rank_host_and_traceback(folder: str) -> None:
    leave_failure(folder, 2, raised(ZeroDivisionError("in my_models")))
    found = cause(SPARK_SAYS, folder)
    assert (found.code, found.retry) == ("SDDP-404", False)
    assert found.details["rank"] == 2
    assert found.details["host"] in found.message
    assert "rank 2 on " in found.message
    assert "ZeroDivisionError: in my_models" in found.message
    assert "in raised" in found.details["traceback"], "the rank's own frames"


@pytest.mark.parametrize("echo", ECHOES, ids=lambda error: type(error).__name__)
@pytest.mark.usefixtures("clock")
def test_a_rank_that_only_noticed_anothers_death_is_never_thecause(folder: str, echo: Exception) -> None:
    leave_failure(folder, 0, raised(echo))
    leave_failure(folder, 1, raised(ValueError("the cause")))
    leave_failure(folder, 3, raised(echo))
    assert "rank 1" in cause(SPARK_SAYS, folder).message


@pytest.mark.usefixtures("clock")
def test_of_several_causes_the_first_in_time_is_told(folder: str) -> None:
    leave_failure(folder, 3, raised(ValueError("first")))
    leave_failure(folder, 0, raised(ValueError("second")))
    assert "rank 3" in cause(SPARK_SAYS, folder).message


@pytest.mark.usefixtures("clock")
def test_where_all_are_echoes_a_rank_was_lost_and_a_retry_may_help(folder: str) -> None:
    for rank, echo in zip((2, 0, 1, 3), ECHOES, strict=True):
        leave_failure(folder, rank, raised(echo))
    found = cause(SPARK_SAYS, folder)
    assert (found.code, found.retry) == ("SDDP-405", True)
    assert all(f"rank {rank} on" in found.message for rank in range(4))


@pytest.mark.parametrize("error", NO_ECHOES, ids=lambda error: type(error).__name__)
def test_a_users_own_error_is_the_cause_whatever_its_words(folder: str, error: Exception) -> None:
    leave_failure(folder, 1, raised(error))
    found = cause(SPARK_SAYS, folder)
    assert (found.code, found.retry) == ("SDDP-404", False)
    assert str(error) in found.message


@pytest.mark.usefixtures("clock")
def test_a_refusal_of_ours_keeps_its_code_its_remedy_and_its_details(folder: str) -> None:
    # Its words name gloo, and it is still no echo.
    leave_failure(folder, 1, raised(SparkDDPError("SDDP-406", "the loss under gloo is nan", "Clip.", {"step": 7})))
    leave_failure(folder, 0, raised(ECHOES[0]))
    found = cause(SPARK_SAYS, folder)
    assert (found.code, found.message, found.remedy) == ("SDDP-406", "rank 1: the loss under gloo is nan", "Clip.")
    assert found.details["step"] == 7
    assert found.details["rank"] == 1


def test_without_a_word_from_any_rank_one_was_lost_and_a_retry_may_help(folder: str) -> None:
    found = cause(SPARK_SAYS, folder)
    assert (found.code, found.retry) == ("SDDP-405", True)
    assert "Could not recover from a failed barrier ResultStage" in found.message
    assert "\n" not in found.message


def test_half_written_failures_are_not_read(folder: str, tmp_path: Path) -> None:
    leave_failure(folder, 1, raised(ValueError("whole")))
    (tmp_path / "failures" / "rank-0.json.1234.tmp").write_text("{")
    assert "rank 1" in cause(SPARK_SAYS, folder).message


def test_a_failure_that_cannot_be_read_hides_none_that_can(folder: str, tmp_path: Path) -> None:
    leave_failure(folder, 1, raised(ValueError("whole")))
    (tmp_path / "failures" / "rank-0.json").write_text("{")
    assert "rank 1" in cause(SPARK_SAYS, folder).message


def test_a_long_traceback_keeps_its_end(folder: str, tmp_path: Path) -> None:
    leave_failure(folder, 0, raised(ValueError("x" * 50_000 + " the end")))
    body: dict[str, Any] = json.loads((tmp_path / "failures" / "rank-0.json").read_text())["body"]
    assert len(body["traceback"]) == 20_000
    assert body["traceback"].rstrip().endswith("the end")


def test_a_storage_that_fails_too_does_not_hide_the_ranks_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    leave_failure((tmp_path / "file").as_uri(), 0, raised(ValueError("the cause")))
    assert (tmp_path / "file").read_bytes() == b""


def test_a_task_that_ended_because_one_of_its_ranks_failed_is_no_cause(folder: str) -> None:
    lost = SparkDDPError("SDDP-405", "rank 3 on b ended with exit status 1", "…", {"rank": 3, "exit_status": 1})
    leave_failure(folder, 2, raised(lost), of_task=True)
    leave_failure(folder, 3, raised(ValueError("the cause")))
    assert "rank 3" in cause(SPARK_SAYS, folder).message
    assert "the cause" in cause(SPARK_SAYS, folder).message


def test_a_rank_of_a_task_that_was_killed_is_the_cause_and_named_once(folder: str) -> None:
    lost = SparkDDPError("SDDP-405", "rank 3 on b ended with signal 9 (SIGKILL)", "…", {"rank": 3, "exit_status": -9})
    leave_failure(folder, 0, raised(ECHOES[0]))
    leave_failure(folder, 2, raised(lost), of_task=True)
    found = cause(SPARK_SAYS, folder)
    assert (found.code, found.message.count("rank 3")) == ("SDDP-405", 1)
    assert "SIGKILL" in found.message

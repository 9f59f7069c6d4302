"""The task's log says how a training goes, each event once; trouble with the events never disturbs the task."""

from __future__ import annotations

import json
import queue
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.hooks import progress
from airflow_provider_sparkddp.hooks.progress import NOTICES, ProgressTail, duration, line, tag

EVENT: dict[str, Any] = {
    "epoch": 2,
    "epochs": 10,
    "step": 400,
    "steps": 1200,
    "metrics": {"loss": 0.18345, "val_mae": 12.1, "nan": None},
    "rows_per_second": 41200,
    "seconds": 33.0,
    "seconds_left": 200.4,
}
NOTICE: dict[str, Any] = {"rank": 3, "host": "host-b", "level": "warning", "text": "UserWarning: mind the gap"}


def write(folder: Path, name: str, **change: Any) -> None:
    put(folder, name, {**EVENT, **change})


def put(folder: Path, name: str, body: dict[str, Any]) -> None:
    """Whole or not at all, as the ranks do."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.new").write_text(json.dumps(body))
    (folder / f"{name}.new").rename(folder / name)


def all_told(folder: Path) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    with ProgressTail(folder.as_uri(), lambda *each: told.append(each)):
        pass
    return told


def test_an_event_is_one_line_for_a_person() -> None:
    assert line(EVENT) == "epoch 2/10 · step 400/1200 · loss 0.1835 · val_mae 12.1 · 41,200 rows/s · ETA 3 m 20 s"


@pytest.mark.parametrize("left", [None, 0])
def test_an_end_that_nothing_tells_or_that_is_reached_is_left_out(left: float | None) -> None:
    assert line({**EVENT, "seconds_left": left}).endswith("41,200 rows/s")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 m 0 s"), (200, "3 m 20 s"), (3900, "1 h 5 m"), (90_000, "25 h 0 m")]
)
def test_a_duration_is_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize("epochs", [None, 0, -1])
def test_without_a_last_epoch_there_is_no_total(epochs: int | None) -> None:
    assert line({**EVENT, "epochs": epochs}).startswith("epoch 2 · step")


def test_each_event_is_told_once_in_order_and_the_last_ones_at_the_end(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    folder, told = tmp_path / "progress", queue.Queue[str]()
    with ProgressTail(folder.as_uri(), lambda level, text: told.put(text)):
        write(folder, "000001.json", step=1)
        assert "step 1/" in told.get(timeout=10)
        # What a writer that died left behind sorts between the events.
        write(folder, "000001.json.1234.tmp")
        write(folder, "000002.json", step=2)
        assert "step 2/" in told.get(timeout=10)
        write(folder, "000003.json", step=3)
        assert "step 3/" in told.get(timeout=10)
    assert told.empty()


def test_events_of_the_last_moment_are_still_told(tmp_path: Path) -> None:
    folder, told = tmp_path / "progress", []
    with ProgressTail(folder.as_uri(), lambda level, text: told.append(level)):
        write(folder, "000001.json")
    assert told == ["info"]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"epoch": 1}', '{"text": "a", "level": "warning"}'])
def test_an_event_that_cannot_be_read_disturbs_nothing(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "progress"
    folder.mkdir()
    (folder / "000001.json").write_text(text)
    write(folder, "000002.json")
    assert [text for _, text in all_told(folder)] == [line(EVENT)]


def test_a_warning_names_its_rank_and_host(tmp_path: Path) -> None:
    put(tmp_path / "progress", "rank-00003-000001.json", NOTICE)
    put(tmp_path / "progress", "rank-00003-000002.json", {**NOTICE, "level": "error", "text": "mine: lost"})
    assert all_told(tmp_path / "progress") == [
        ("warning", "rank 3 on host-b: UserWarning: mind the gap"),
        ("error", "rank 3 on host-b: mine: lost"),
    ]


def test_the_same_warning_of_several_ranks_is_told_once_with_the_ranks(tmp_path: Path) -> None:
    for rank in (0, 1, 2, 7):
        put(tmp_path / "progress", f"rank-{rank:05d}-000001.json", {**NOTICE, "rank": rank})
    assert all_told(tmp_path / "progress") == [("warning", "ranks 0-2, 7: UserWarning: mind the gap")]


def test_who_says_the_same_later_is_told_at_the_end(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    folder, told = tmp_path / "progress", queue.Queue[str]()
    put(folder, "rank-00000-000001.json", {**NOTICE, "rank": 0})
    with ProgressTail(folder.as_uri(), lambda level, text: told.put(text)):
        assert told.get(timeout=10) == "rank 0 on host-b: UserWarning: mind the gap"
        put(folder, "rank-00003-000001.json", NOTICE)
        write(folder, "000001.json")
        assert told.get(timeout=10) == line(EVENT)
    assert told.get(timeout=10) == "also rank 3 on host-b: UserWarning: mind the gap"
    assert told.empty()


def test_warnings_are_bounded_and_the_rest_counted(tmp_path: Path) -> None:
    for number in range(NOTICES + 5):
        put(tmp_path / "progress", f"rank-00003-{number:06d}.json", {**NOTICE, "text": f"UserWarning: {number}"})
    told = all_told(tmp_path / "progress")
    assert len(told) == NOTICES + 1
    assert told[-1] == ("warning", "5 more warnings and errors stand in the logs of the ranks")


def test_of_many_ranks_the_first_are_named() -> None:
    notices = [{"rank": rank, "host": "h"} for rank in range(0, 40, 2)]
    assert tag(notices) == "ranks 0, 2, 4, 6, 8, 10, 12, 14, … (20 ranks)"

"""The task's log says how a training goes, each event once; trouble with the events never disturbs the task."""

from __future__ import annotations

import json
import queue
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.hooks import progress
from airflow_provider_sparkddp.hooks.progress import ProgressTail, line

EVENT: dict[str, Any] = {
    "epoch": 2,
    "epochs": 10,
    "step": 400,
    "steps": 1200,
    "metrics": {"loss": 0.18345, "val_mae": 12.1, "nan": None},
    "rows_per_second": 41200,
    "seconds": 33.0,
}


def write(folder: Path, name: str, **change: Any) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps({**EVENT, **change}))


def test_an_event_is_one_line_for_a_person() -> None:
    assert line(EVENT) == "epoch 2/10 · step 400/1200 · loss 0.1835 · val_mae 12.1 · 41,200 rows/s · 33 s"


@pytest.mark.parametrize("epochs", [None, 0])
def test_without_a_last_epoch_there_is_no_total(epochs: int | None) -> None:
    assert line({**EVENT, "epochs": epochs}).startswith("epoch 2 · step")


def test_each_event_is_told_once_in_order_and_the_last_ones_at_the_end(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    folder, told = tmp_path / "progress", queue.Queue[str]()
    with ProgressTail(folder.as_uri(), told.put):
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
    with ProgressTail(folder.as_uri(), told.append):
        write(folder, "000001.json")
    assert len(told) == 1


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"epoch": 1}'])
def test_an_event_that_cannot_be_read_disturbs_nothing(tmp_path: Path, text: str) -> None:
    folder, told = tmp_path / "progress", []
    folder.mkdir()
    (folder / "000001.json").write_text(text)
    with ProgressTail(folder.as_uri(), told.append):
        pass
    assert told == []

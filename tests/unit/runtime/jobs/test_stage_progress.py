"""A long phase tells now and then how far it is, and trouble in telling disturbs nothing."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.jobs.stage_progress import stages_line, stages_told


class Tracker:
    """Two active stages, as Spark's status tracker tells them; one has ended since it was listed."""

    def getActiveStageIds(self) -> list[int]:
        return [3, 4, 5]

    def getStageInfo(self, stage: int) -> Any:
        stages = {3: (10, 4, 2), 4: (1000, 996, 4)}
        if stage not in stages:
            return None
        total, ended, active = stages[stage]
        return SimpleNamespace(numTasks=total, numCompletedTasks=ended, numActiveTasks=active)


def test_the_line_sums_up_the_active_stages() -> None:
    assert stages_line(Tracker()) == "1,000/1,010 tasks, 6 running"


def test_without_an_active_stage_there_is_nothing_to_tell() -> None:
    assert stages_line(SimpleNamespace(getActiveStageIds=list, getStageInfo=dict)) == ""


def test_it_tells_while_the_block_runs_and_ends_with_it() -> None:
    told, heard = [], threading.Event()
    spark = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=Tracker))

    def tell(line: str) -> None:
        told.append(line)
        heard.set()

    with stages_told(spark, "write partitions", every=0.01, tell=tell):
        assert heard.wait(10)
    assert told[0].startswith("sparkddp: write partitions · 1,000/1,010 tasks, 6 running · ")
    assert not [thread for thread in threading.enumerate() if thread.name == "sparkddp-stages"]


def test_a_session_that_cannot_be_asked_disturbs_nothing() -> None:
    with stages_told(SimpleNamespace(), "write partitions", every=0.001, tell=print), pytest.raises(ValueError):
        raise ValueError("of the block")

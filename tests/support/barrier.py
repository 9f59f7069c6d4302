"""Starting ranks in tests of the barrier launch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.launch import Launch, launch
from airflow_provider_sparkddp.runtime.jobs.cluster import cores

FUNCTIONS = "tests.support.rank_functions"


def run(spark: Any, function: str, folder: Path, world_size: int = 4, ranks_per_task: int = 1) -> list[dict[str, Any]]:
    settings = {"folder": str(folder)}
    failures, path = f"file://{folder}/failures", f"{FUNCTIONS}:{function}"
    work = Launch(path, settings, failures, cores(spark, None), ranks_per_task=ranks_per_task)
    return launch(spark, work, world_size)


def check_ranks(reports: list[dict[str, Any]]) -> None:
    assert [r["rank"] for r in reports] == [0, 1, 2, 3]
    assert {r["sum"] for r in reports} == {4.0}
    assert len({r["pid"] for r in reports}) == 4
    assert len({tuple(r["leader"]) for r in reports}) == 1

"""Several ranks in one Spark task, each a process that ends with it."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from airflow_provider_sparkddp.runtime.jobs import train
from airflow_provider_sparkddp.runtime.models import load_model
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support import jobs, walk
from tests.support.barrier import check_ranks, run


def test_two_tasks_of_two_ranks_agree(local_spark: Any, tmp_path: Path) -> None:
    reports = run(local_spark, "all_reduce", tmp_path, ranks_per_task=2)
    check_ranks(reports)
    assert [r["local_rank"] for r in reports] == [0, 1, 2, 3], "all on this host"


@pytest.mark.parametrize(
    ("function", "code", "told"),
    [
        ("rank_one_raises", "SDDP-404", "rank 1 on .*the shoe is on the wrong foot"),
        ("exits", "SDDP-405", "rank 3 on .* exit status 7"),
        ("nowhere", "SDDP-401", "rank_functions:nowhere"),
    ],
)
def test_a_rank_that_fails_is_the_one_that_is_told(
    function: str, code: str, told: str, local_spark: Any, tmp_path: Path
) -> None:
    with pytest.raises(SparkDDPError, match=told) as caught:
        run(local_spark, function, tmp_path, ranks_per_task=2)
    assert caught.value.code == code


def test_a_rank_that_is_killed_is_told_and_not_the_peer_that_lost_it(local_spark: Any, tmp_path: Path) -> None:
    # In one task: of two, the other's may be the first that Spark hears of.
    with pytest.raises(SparkDDPError, match=r"rank 1 on .* signal 9 \(SIGKILL\)") as caught:
        run(local_spark, "rank_one_is_killed", tmp_path, world_size=2, ranks_per_task=2)
    assert (caught.value.code, caught.value.retry) == ("SDDP-405", True)


def test_a_process_that_a_rank_leaves_behind_holds_nothing_up(local_spark: Any, tmp_path: Path) -> None:
    reports = run(local_spark, "leaves_a_process_behind", tmp_path, world_size=2, ranks_per_task=2)
    for report in reports:
        os.kill(report["left"], signal.SIGKILL)


def test_no_rank_outlives_its_task(local_spark: Any, tmp_path: Path) -> None:
    with pytest.raises(SparkDDPError) as caught:
        run(local_spark, "task_of_rank_one_is_killed", tmp_path, ranks_per_task=2)
    assert caught.value.code == "SDDP-405"
    for rank in range(4):
        require_end(int((tmp_path / f"pid-{rank}").read_text()))


def require_end(pid: int) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended, *_ = select.select([process], [], [], 20)
        assert ended, f"process {pid} is still there"
    finally:
        os.close(process)


def test_a_training_is_the_same_in_both_forms(local_spark: Any, tmp_path: Path) -> None:
    manifest = walk.line_manifest(tmp_path / "data")
    weights = []
    for ranks_per_task in (1, 2):
        given = {"model": f"{walk.MODELS}:Line", "features": ["a", "b"], "target": "y", "threads_per_rank": 1}
        job = jobs.job(
            "train", tmp_path, partitions=manifest, num_nodes=2, devices=2, ranks_per_task=ranks_per_task, **given
        )
        values = train.run(local_spark, job, jobs.wanted).values
        assert values["world_size"] == 4
        weights.append(load_model(values["model"], trusted_modules=[walk.MODELS]).module.layer.weight)
    assert torch.equal(*weights)

"""The barrier launch, on an embedded Spark and on a real cluster of two workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.barrier.launch import Launch, launch
from airflow_provider_sparkddp.runtime.jobs.cluster import cores, require_slots
from airflow_provider_sparkddp.spec.errors import SparkDDPError

FUNCTIONS = "tests.support.rank_functions"


def run(spark: Any, function: str, folder: Path, world_size: int = 4) -> list[dict[str, Any]]:
    work = Launch(f"{FUNCTIONS}:{function}", {}, f"file://{folder}/failures", cores(spark, None))
    return launch(spark, work, world_size)


def check_ranks(reports: list[dict[str, Any]]) -> None:
    assert [r["rank"] for r in reports] == [0, 1, 2, 3]
    assert {r["sum"] for r in reports} == {4.0}
    assert len({r["pid"] for r in reports}) == 4
    assert len({tuple(r["leader"]) for r in reports}) == 1


class TestEmbedded:
    def test_four_ranks_in_four_processes_agree(self, local_spark: Any, tmp_path: Path) -> None:
        reports = run(local_spark, "all_reduce", tmp_path)
        check_ranks(reports)
        assert {r["gpus"] for r in reports} == {None}

    def test_a_worker_that_is_reused_keeps_nothing_of_a_training(self, local_spark: Any, tmp_path: Path) -> None:
        before = {r["pid"] for r in run(local_spark, "all_reduce", tmp_path)}
        left = run(local_spark, "environment_after", tmp_path)
        assert {r["pid"] for r in left} & before, "no worker was reused, so this proves nothing"
        for report in left:
            assert (report["master_port"], report["world_size"], report["seed"]) == (None, None, None)
            assert report["group"] is False

    def test_a_rank_that_raises_reaches_the_driver_with_its_traceback(self, local_spark: Any, tmp_path: Path) -> None:
        with pytest.raises(SparkDDPError) as caught:
            run(local_spark, "rank_one_raises", tmp_path)
        error = caught.value
        assert error.code == "SDDP-404"
        assert "rank 1 on" in error.message
        assert "the shoe is on the wrong foot" in error.message
        assert 'raise ValueError("the shoe is on the wrong foot")' in error.details["traceback"]
        assert (error.details["rank"], error.retry) == (1, False)

    def test_a_rank_that_is_killed_is_lost_and_may_be_retried(self, local_spark: Any, tmp_path: Path) -> None:
        with pytest.raises(SparkDDPError) as caught:
            run(local_spark, "rank_one_is_killed", tmp_path)
        assert caught.value.code == "SDDP-405"
        assert caught.value.retry

    def test_too_few_slots_are_refused_at_once_with_both_numbers(self, local_spark: Any) -> None:
        with pytest.raises(SparkDDPError, match="5 ranks need 5 Spark slots at once.* offers 4") as caught:
            require_slots(local_spark, 5, None)
        assert caught.value.code == "SDDP-303"


class TestCluster:
    def test_four_ranks_on_two_workers_get_their_own_gpus(self, cluster_spark: Any, tmp_path: Path) -> None:
        require_slots(cluster_spark, 4, 60)
        reports = run(cluster_spark, "all_reduce", tmp_path)
        check_ranks(reports)
        assert sorted(r["gpus"] for r in reports) == ["0", "1", "2", "3"]
        assert [r["threads"] for r in reports] == [1, 1, 1, 1]

    def test_a_rank_alone_on_its_executor_has_all_its_cores(self, cluster_spark: Any, tmp_path: Path) -> None:
        require_slots(cluster_spark, 4, 60)
        reports = run(cluster_spark, "all_reduce", tmp_path, world_size=2)
        assert {r["sum"] for r in reports} == {2.0}
        # Spark may place both on one executor or one on each.
        assert {r["threads"] for r in reports} <= {1, 2}

    def test_more_ranks_than_slots_are_refused_in_seconds(self, cluster_spark: Any) -> None:
        with pytest.raises(SparkDDPError, match="5 ranks need 5 Spark slots at once.* offers 4") as caught:
            require_slots(cluster_spark, 5, 1)
        assert caught.value.code == "SDDP-303"

"""The barrier launch on an embedded Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.jobs.cluster import require_slots
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support.barrier import check_ranks, run


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

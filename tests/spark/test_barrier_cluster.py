"""The barrier launch on a real cluster of two workers. A module of its own: a process has one Spark session at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.jobs.cluster import require_slots
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support.barrier import check_ranks, run


class TestCluster:
    def test_four_ranks_on_two_workers_get_their_own_gpus(self, cluster_spark: Any, tmp_path: Path) -> None:
        require_slots(cluster_spark, 4, 60)
        reports = run(cluster_spark, "all_reduce", tmp_path)
        check_ranks(reports)
        assert sorted(r["gpus"] for r in reports) == ["0", "1", "2", "3"]
        assert [r["threads"] for r in reports] == [1, 1, 1, 1]

    def test_a_variable_that_contradicts_spark_is_refused(self, cluster_spark: Any, tmp_path: Path) -> None:
        with pytest.raises(SparkDDPError, match="CUDA_VISIBLE_DEVICES is '7'") as caught:
            run(cluster_spark, "all_reduce_where_devices_are_set", tmp_path)
        assert caught.value.code == "SDDP-307"

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

"""Partitions on a real cluster of two workers, one of whose executors is killed. A module of its own: one session a process."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.jobs import partition
from airflow_provider_sparkddp.runtime.jobs.cluster import require_slots
from airflow_provider_sparkddp.spec.manifests import TRAIN, VALIDATION, Manifest, data_uri
from tests.support import jobs

ROWS = 400_000
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def ids(outcome: Any) -> tuple[Manifest, list[int]]:
    uri = outcome.values["manifest"]
    manifest = Manifest.from_text(storage.read_text(uri), uri)
    found = [pq.ParquetFile(data_uri(uri, f).removeprefix("file://")).read(["id"]) for f in manifest.files]
    return manifest, sorted(value for table in found for value in table.column("id").to_pylist())


class KillsAnExecutor(threading.Thread):
    """Kills one executor as soon as the stage after that of `map_tasks` has begun; notes which stages were tried again."""

    def __init__(self, spark: Any, map_tasks: int) -> None:
        super().__init__(name="kills-an-executor", daemon=True)
        self.tracker, self.done = spark.sparkContext.statusTracker(), threading.Event()
        self.application = spark.sparkContext.applicationId
        self.killed, self.attempts, self.map_tasks, self.map_stage = 0, {}, map_tasks, None

    def run(self) -> None:
        while not self.done.wait(0.01):
            stages = [self.tracker.getStageInfo(stage) for stage in self.tracker.getActiveStageIds()]
            for info in filter(None, stages):
                self.attempts[info.stageId] = max(self.attempts.get(info.stageId, 0), info.currentAttemptId)
                if self.map_stage is None and info.numTasks == self.map_tasks:
                    self.map_stage = info.stageId
                # What the map stage wrote lies with both executors, and is being read.
                if not self.killed and self.map_stage is not None and info.stageId > self.map_stage:
                    self.killed = _kill_one_executor(self.application)


def _kill_one_executor(application: str) -> int:
    """Of this application only: other clusters may run on this machine."""
    commands = {process.pid: _command(process) for process in psutil.process_iter()}
    java = {pid: command for pid, command in commands.items() if command and command[0].endswith("java")}
    pids = sorted(pid for pid, command in java.items() if application in command and _EXECUTOR in command)
    os.kill(pids[0], signal.SIGKILL)
    return pids[0]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


class TestCluster:
    def test_rows_groups_and_held_out_rows_on_two_workers(self, cluster_spark: Any, tmp_path: Path) -> None:
        require_slots(cluster_spark, 4, 60)
        sql = f"SELECT id, id % 97 AS g, id / 3 AS x FROM range(0, {ROWS}, 1, 7)"
        for settings in ({}, {"group_by": "g", "order_by": "id"}, {"shuffle": False}):
            job = jobs.job("partition", tmp_path, source={"sql": sql}, num_nodes=4, validation=0.1, **settings)
            manifest, found = ids(partition.run(cluster_spark, job, jobs.wanted))
            assert found == list(range(ROWS))
            for split in (TRAIN, VALIDATION):
                rows = manifest.rank_rows(split)
                # 97 groups are fewer than a hundred a rank: they balance within the largest of them.
                slack = ROWS / 97 if settings.get("group_by") else max(8, 0.01 * sum(rows) / 4)
                assert max(rows) - min(rows) <= slack

    @pytest.mark.timeout(240)
    def test_an_executor_that_dies_between_shuffle_write_and_read_costs_no_row(
        self, cluster_spark: Any, tmp_path: Path
    ) -> None:
        require_slots(cluster_spark, 4, 60)
        sql = f"SELECT id, rand(7) AS x, uuid() AS text FROM range(0, {ROWS}, 1, 8)"
        killer = KillsAnExecutor(cluster_spark, map_tasks=8)
        killer.start()
        try:
            job = jobs.job("partition", tmp_path, source={"sql": sql}, num_nodes=4, validation=0.1)
            outcome = partition.run(cluster_spark, job, jobs.wanted)
        finally:
            killer.done.set()
            killer.join()
        assert killer.killed
        assert max(killer.attempts.values()) > 0, "no stage was tried again, so this proves nothing"
        _, found = ids(outcome)
        assert found == list(range(ROWS))

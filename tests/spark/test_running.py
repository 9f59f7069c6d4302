"""What a user sees of a training on several ranks: logs, warnings, figures of each rank, slow ranks, a limit of time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from airflow_provider_sparkddp.hooks.progress import ProgressTail
from airflow_provider_sparkddp.runtime.jobs import train
from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.results import JobResult
from tests.support import jobs, partitions

MODELS = "tests.support.talking_models"
XCOM_BYTES = 48 * 1024


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """y = 2 a - b + 1, 600 rows for two ranks."""
    a, b = torch.rand(2, 600, generator=torch.Generator().manual_seed(1)).tolist()
    rows = {"a": a, "b": b, "y": [2 * x - y + 1 for x, y in zip(a, b, strict=True)]}
    return partitions.write(tmp_path_factory.mktemp("running"), [rows], [rows], row_group_size=50)


def planned(folder: Path, manifest: str, model: str, **settings: Any) -> Job:
    given = {"features": ["a", "b"], "target": "y", "num_nodes": 2, "devices": 1, "batch_size": 10, **settings}
    return jobs.job("train", folder, partitions=manifest, model=f"{MODELS}:{model}", **given)


def local(job: Job, *names: str) -> Path:
    return Path(job.directory.removeprefix("file://"), *names)


@pytest.fixture(scope="module")
def talked(local_spark: Any, manifest: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Outcome]:
    trainer = {"max_epochs": 2, "log_every_n_steps": 10}
    job = planned(tmp_path_factory.mktemp("talked"), manifest, "Talks", trainer=trainer)
    return job, train.run(local_spark, job, jobs.wanted)


def test_each_rank_has_its_own_log_and_its_place_is_told(talked: tuple[Job, Outcome]) -> None:
    job, outcome = talked
    for rank in range(2):
        log = local(job, "logs", f"rank-{rank:05d}.log").read_text()
        for source, text in [("stdout", "print of"), ("stderr", "stderr of"), ("INFO", f"{MODELS}: info of")]:
            assert f"{source:7} {text} rank {rank}\n" in log
            assert f"{text} rank {1 - rank}\n" not in log
    assert outcome.values["logs"] == outcome.report["logs"] == f"{job.directory}/logs"
    assert f"Logs of the ranks: {job.directory}/logs" in outcome.summary


def test_warnings_and_errors_are_told_by_rank_once(talked: tuple[Job, Outcome]) -> None:
    told: list[tuple[str, str]] = []
    with ProgressTail(f"{talked[0].directory}/progress", lambda *each: told.append(each)):
        pass
    host = talked[1].report["ranks"][1]["host"]
    assert [each for each in told if each[0] != "info"] == [
        ("warning", "ranks 0-1: UserWarning: the same on every rank"),
        ("error", f"rank 1 on {host}: {MODELS}: only here"),
    ]
    lines = [text for level, text in told if level == "info"]
    assert [line.split(" · ")[:2] for line in lines] == [["epoch 1/2", "step 30/30"], ["epoch 2/2", "step 30/30"]]
    assert " · ETA " in lines[0]


def test_the_result_holds_the_history_and_each_ranks_figures(talked: tuple[Job, Outcome]) -> None:
    report = talked[1].report
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
    for rank in report["ranks"]:
        assert (rank["trained_steps"], rank["rows"]) == (60, 300)
        assert rank["rows_per_second"] == pytest.approx(600 / rank["train_seconds"], rel=0.02)
        assert 0 < rank["data_wait"] < 1
        assert rank["memory_bytes"] > 1e6
    history = report["history"]
    assert len({len(history[name]) for name in ("step", "epoch", "name", "value")}) == 1
    assert set(history["name"]) == {"loss", "step_loss", "both_step", "both_epoch", "val_mae"}
    assert report["slow_ranks"] == []
    table = "\n".join(talked[1].summary)
    for title in ("rows/s", "data wait", "memory"):
        assert title in table


def test_the_result_file_has_all_of_it_and_the_xcom_a_small_part(talked: tuple[Job, Outcome]) -> None:
    job, outcome = talked
    result = JobResult(job.kind, job.nonce, outcome.values, report=outcome.report)
    assert JobResult.from_text(result.to_text(), "result.json", job.nonce).report == outcome.report
    assert len(json.dumps(outcome.values)) < XCOM_BYTES
    assert not {"history", "ranks"} & set(outcome.values)


def test_a_slow_rank_is_named_with_what_it_is_slow_at(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    job = planned(tmp_path, manifest, "Slow")
    outcome = train.run(local_spark, job, jobs.wanted)
    (slow,) = outcome.report["slow_ranks"]
    assert (slow["rank"], slow["at"]) == (1, "compute")
    assert slow["seconds"] > 1.2 * slow["others"]
    assert outcome.values["slow_ranks"] == [slow]
    host = outcome.report["ranks"][1]["host"]
    assert any(
        line.startswith(f"rank 1 on {host} is slower than the other ranks, at its compute") for line in outcome.summary
    )
    (notice,) = local(job, "progress").glob("rank-*.json")
    told = json.loads(notice.read_text())
    assert (told["rank"], told["text"].startswith("this rank is slower than the other ranks, at its compute")) == (
        1,
        True,
    )


def test_a_limit_of_time_ends_all_ranks_after_equal_steps(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    job = planned(tmp_path, manifest, "Talks", trainer={"max_time": "00:00:00:02"})
    outcome = train.run(local_spark, job, jobs.wanted)
    assert local(job, "model", "model.json").exists()
    steps = {rank["trained_steps"] for rank in outcome.report["ranks"]}
    assert len(steps) == 1
    assert steps.pop() > 1
    assert all(rank["train_seconds"] >= 2 for rank in outcome.report["ranks"])


def test_storage_that_takes_no_logs_costs_the_logs_alone(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    job = planned(tmp_path, manifest, "Talks")
    local(job).mkdir(parents=True)
    for name in ("logs", "progress"):
        local(job, name).write_text("a file where the folder would be")
    outcome = train.run(local_spark, job, jobs.wanted)
    assert local(job, "model", "model.json").exists()
    for rank in outcome.report["ranks"]:
        assert (rank["channel"]["lost"] > 0, rank["channel"]["log"]) == (True, False)
    lost = [line for line in outcome.summary if "could not tell all" in line]
    assert [line.split(" could")[0] for line in lost] == ["rank 0", "rank 1"]
    assert "the end of its log" in lost[0]
    assert "SDDP-301" in lost[0]


def test_a_killed_rank_leaves_its_log(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    job = planned(tmp_path, manifest, "Killed", model_kwargs={"folder": str(tmp_path)})
    with pytest.raises(SparkDDPError) as caught:
        train.run(local_spark, job, jobs.wanted)
    assert caught.value.code == "SDDP-405"
    assert "stdout  the last words\n" in local(job, "logs", "rank-00001.log").read_text()

"""One rank trains in this process: what it tells while it trains and what it reports."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.progress import channel
from airflow_provider_sparkddp.runtime.training.callbacks import lines
from airflow_provider_sparkddp.runtime.training.rank import train_rank
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support import partitions
from tests.support.silent import silent_storage  # noqa: F401

INFO = RankInfo(0, 1, 0, 1, 0, "here", "127.0.0.1", 29500, (), 1, None)
ROWS, BATCH = 200, 10
STEPS = ROWS // BATCH


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """y = 2 a - b + 1."""
    a, b = torch.rand(2, ROWS, generator=torch.Generator().manual_seed(1)).tolist()
    rows = {"a": a, "b": b, "y": [2 * x - y + 1 for x, y in zip(a, b, strict=True)]}
    return partitions.write(tmp_path_factory.mktemp("rank"), [rows], [rows], row_group_size=50)


def trained(folder: Path, manifest: str, model: str = "talking_models:Talks", **different: Any) -> dict[str, Any]:
    settings = {
        "manifest": manifest,
        "model": f"tests.support.{model}",
        "model_kwargs": {},
        "alias": "line",
        "features": ["a", "b"],
        "target": "y",
        "batch_size": BATCH,
        "trainer": {"max_epochs": 2, "log_every_n_steps": 5, "accelerator": "cpu"},
        "rank_rows": [ROWS],
        "rank_bytes": [0],
        "world_size": 1,
        "progress": f"file://{folder}/progress",
        "logs": f"file://{folder}/logs",
        "model_folder": f"file://{folder}/model",
        **different,
    }
    return train_rank(INFO, dist.HashStore(), settings)


def events(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in sorted((folder / "progress").glob("0*.json"))]
    return [event for event in found if "epoch" in event]


@pytest.fixture(scope="module")
def talked(manifest: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("talked")
    return folder, trained(folder, manifest)


def test_each_epoch_has_a_line(talked: tuple[Path, dict[str, Any]]) -> None:
    told = events(talked[0])
    assert [(e["epoch"], e["epochs"], e["step"], e["steps"]) for e in told] == [
        (1, 2, STEPS, STEPS),
        (2, 2, STEPS, STEPS),
    ]
    assert {"loss", "val_mae", "both"} <= set(told[-1]["metrics"])
    assert told[0]["seconds_left"] > 0
    assert told[-1]["seconds_left"] == 0


def test_every_logged_metric_is_in_the_history_once(talked: tuple[Path, dict[str, Any]]) -> None:
    logged = talked[1]["logged"]
    steps: dict[str, list[int]] = {}
    for step, name in zip(logged["step"], logged["name"], strict=True):
        steps.setdefault(name, []).append(step)
    every_fifth = list(range(5, 2 * STEPS + 1, 5))
    assert steps == {
        "step_loss": every_fifth,
        "both_step": every_fifth,
        "both_epoch": [STEPS, 2 * STEPS],
        "val_mae": [STEPS, 2 * STEPS],
        "loss": [STEPS, 2 * STEPS],
    }
    epochs = dict(zip(logged["step"], logged["epoch"], strict=True))
    assert epochs == {step: (step - 1) // STEPS for step in every_fifth}
    values = {(n, s): v for n, s, v in zip(logged["name"], logged["step"], logged["value"], strict=True)}
    assert values["val_mae", 2 * STEPS] == pytest.approx(talked[1]["metrics"]["val_mae"])
    assert values["loss", STEPS] == pytest.approx(values["both_epoch", STEPS], rel=1e-5)


def test_batches_that_make_no_step_are_no_points(manifest: str, tmp_path: Path) -> None:
    trainer = {"max_epochs": 1, "accelerator": "cpu", "accumulate_grad_batches": 4, "log_every_n_steps": 1}
    logged = trained(tmp_path, manifest, trainer=trainer)["logged"]
    steps = [step for step, name in zip(logged["step"], logged["name"], strict=True) if name == "step_loss"]
    assert steps == list(range(1, STEPS // 4 + 1))


def test_the_figures_of_the_rank(talked: tuple[Path, dict[str, Any]]) -> None:
    report = talked[1]
    assert report["trained_steps"] == 2 * STEPS
    assert report["rows_per_second"] == pytest.approx(2 * ROWS / report["train_seconds"], rel=0.02)
    assert 0 < report["data_wait"] < 1
    assert report["data_seconds"] + report["step_seconds"] <= report["train_seconds"]
    assert report["memory_bytes"] > 1e6
    assert report["gpu_memory_bytes"] is None
    assert report["channel"] == {"lost": 0, "log": True, "untold": 0, "error": None}


def test_what_the_module_says_stands_in_the_ranks_log(talked: tuple[Path, dict[str, Any]]) -> None:
    log = (talked[0] / "logs" / "rank-00000.log").read_text()
    assert "stdout  print of rank 0\n" in log
    assert "stderr  stderr of rank 0\n" in log
    assert "INFO    tests.support.talking_models: info of rank 0\n" in log
    assert "UserWarning: the same on every rank" in log
    notices = [json.loads(path.read_text()) for path in (talked[0] / "progress").glob("rank-*.json")]
    assert ("warning", "here", "UserWarning: the same on every rank") in {
        (each["level"], each["host"], each["text"]) for each in notices
    }


def test_a_failure_leaves_the_process_as_it_was_and_its_traceback_in_the_log(manifest: str, tmp_path: Path) -> None:
    before = (sys.stdout, sys.stderr)
    with pytest.raises(SparkDDPError, match="loss is nan"):
        trained(tmp_path, manifest, "tiny_model:Nan")
    assert (sys.stdout, sys.stderr) == before
    assert "the loss is nan" in (tmp_path / "logs" / "rank-00000.log").read_text()


def test_many_short_epochs_are_no_flood_and_the_last_one_is_told(
    manifest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "EPOCHS_AT_ONCE", 2)
    trained(tmp_path, manifest, trainer={"max_epochs": 6, "accelerator": "cpu", "limit_train_batches": 2})
    assert [event["epoch"] for event in events(tmp_path)] == [1, 2, 6]


def test_a_long_epoch_has_lines_within(manifest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "SECONDS_BETWEEN_LINES", 0.0)
    trained(tmp_path, manifest, trainer={"max_steps": 6, "accelerator": "cpu"})
    told = events(tmp_path)
    assert [event["step"] for event in told] == [1, 2, 3, 4, 5, 6, 6]
    assert [set(event["metrics"]) >= {"loss"} for event in told] == [True] * 7
    assert told[-1]["seconds_left"] == 0, "max_steps is known"


def test_without_a_limit_that_is_known_no_end_is_told(manifest: str, tmp_path: Path) -> None:
    stop = {"$import": "tests.unit.runtime.training.test_rank:StopsSoon", "kwargs": {}}
    trained(tmp_path, manifest, trainer={"max_epochs": -1, "accelerator": "cpu", "callbacks": [stop]})
    assert [event["seconds_left"] for event in events(tmp_path)] == [None]


def test_a_storage_that_hangs_neither_stalls_nor_fails_the_training(
    manifest: str,
    tmp_path: Path,
    silent_storage: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel, "END_SECONDS", 0.1)
    monkeypatch.setattr(channel, "TICK_SECONDS", 0.01)
    hangs = {"logs": f"{silent_storage}/logs", "progress": f"{silent_storage}/progress"}
    report = trained(tmp_path, manifest, **hangs)
    assert report["trained_steps"] == 2 * STEPS
    assert report["channel"]["error"] == "storage did not answer"
    assert (report["channel"]["lost"] > 0, report["channel"]["log"]) == (True, False)
    assert (tmp_path / "model" / "model.json").exists()


def StopsSoon() -> Any:
    """A callback that ends the training after its first epoch."""
    from pytorch_lightning.callbacks import LambdaCallback

    return LambdaCallback(on_train_epoch_end=lambda trainer, module: setattr(trainer, "should_stop", True))

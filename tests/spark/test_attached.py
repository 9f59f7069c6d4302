"""Loggers, profiler and tuning in a training on Spark: files on the run's storage, results that are used, failures that keep both."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from airflow_provider_sparkddp.runtime.jobs import train
from airflow_provider_sparkddp.runtime.models import load_model
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from tests.support import jobs, walk

MODELS = walk.MODELS


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> str:
    return walk.line_manifest(tmp_path_factory.mktemp("attached"))


def job(folder: Path, manifest: str, model: str = "Line", **settings: Any) -> Job:
    given = {"model": f"{MODELS}:{model}", "features": ["a", "b"], "target": "y", "num_nodes": 2, **settings}
    return jobs.job("train", folder, partitions=manifest, **given)


def trained(spark: Any, folder: Path, manifest: str, **settings: Any) -> dict[str, Any]:
    return train.run(spark, job(folder, manifest, **settings), jobs.wanted).values


def local(uri: str) -> Path:
    return Path(uri.removeprefix("file://"))


def begins(folder: Path) -> list[dict[str, Any]]:
    return [torch.load(folder / f"rank-{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.fixture(scope="module")
def watched(local_spark: Any, manifest: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Two epochs with all that can be attached, tuned before."""
    folder = tmp_path_factory.mktemp("watched")
    trainer = {"max_epochs": 2, "logger": ["csv", "tensorboard"], "profiler": "simple"}
    tune = {"lr": {"num_training": 30}, "batch_size": {"init_val": 50, "max_val": 100}}
    given = {"model": "Begins", "model_kwargs": {"folder": str(folder)}, "tune": tune}
    return folder, trained(local_spark, folder, manifest, trainer=trainer, **given)


def test_the_loggers_files_lie_on_the_runs_storage(watched: tuple[Path, dict[str, Any]]) -> None:
    _, values = watched
    logs = local(values["model"]).parent / "logs"
    assert values["loggers"] == {name: f"file://{logs}/{name}" for name in ("csv", "tensorboard", "profiler")}
    assert "logs_lost" not in values
    with (logs / "csv" / "lightning_logs" / "version_0" / "metrics.csv").open() as file:
        logged = [float(row["val_mae"]) for row in csv.DictReader(file) if row["val_mae"]]
    assert len(logged) == 2
    assert logged[-1] == pytest.approx(values["metrics"]["val_mae"])
    events = EventAccumulator(str(logs / "tensorboard" / "lightning_logs" / "version_0"))
    events.Reload()
    assert [event.value for event in events.Scalars("val_mae")] == pytest.approx(logged, rel=1e-5)


def test_each_ranks_profile_is_there(watched: tuple[Path, dict[str, Any]]) -> None:
    folder = local(watched[1]["loggers"]["profiler"])
    for rank in range(2):
        (report,) = (folder / f"rank-{rank:05d}").iterdir()
        assert "run_training_batch" in report.read_text()


def test_what_was_found_is_used_and_told(watched: tuple[Path, dict[str, Any]]) -> None:
    _, values = watched
    rate = values["tune"]["lr"]["suggestion"]
    assert rate != 0.1
    assert len(values["tune"]["lr"]["points"]) == 30
    assert values["tune"]["batch_size"]["tried"] == [50, 100]
    assert (values["batch_size"], values["global_batch_size"]) == (100, 200)
    model = load_model(values["model"], trusted_modules=[MODELS])
    assert model.description.model_kwargs["learning_rate"] == rate
    assert model.module.learning_rate == rate
    assert model.description.training["batch_size"] == 100
    told = local(values["loggers"]["csv"]) / "lightning_logs" / "version_0" / "hparams.yaml"
    assert yaml.safe_load(told.read_text())["learning_rate"] == rate


def test_tuning_changes_neither_the_first_weights_nor_the_random_numbers(
    watched: tuple[Path, dict[str, Any]], local_spark: Any, manifest: str, tmp_path: Path
) -> None:
    trained(local_spark, tmp_path, manifest, model="Begins", model_kwargs={"folder": str(tmp_path)})
    for tuned, plain in zip(begins(watched[0]), begins(tmp_path), strict=True):
        assert torch.equal(tuned["weights"], plain["weights"])
        assert torch.equal(tuned["random"], plain["random"])


def test_logs_that_cannot_be_written_do_not_fail_a_training(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    asked = job(tmp_path, manifest, trainer={"max_epochs": 1, "logger": "csv"})
    local(asked.directory).mkdir()
    (local(asked.directory) / "logs").write_text("a file where the folder would be")
    outcome = train.run(local_spark, asked, jobs.wanted)
    assert "SDDP-301" in outcome.values["logs_lost"]
    assert any(line.startswith("not all of these files are there") for line in outcome.summary)
    assert load_model(outcome.values["model"], trusted_modules=[MODELS])


def test_a_dry_run_takes_a_few_batches_and_logs_nothing(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    trainer = {"fast_dev_run": 2, "logger": "csv", "max_epochs": 5}
    outcome = train.run(local_spark, job(tmp_path, manifest, trainer=trainer), jobs.wanted)
    assert outcome.values["epochs"] == 1
    assert outcome.values["loggers"] == {"csv": None}
    assert load_model(outcome.values["model"], trusted_modules=[MODELS])


def test_a_training_that_fails_keeps_what_was_logged(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    asked = job(tmp_path, manifest, "RaisesLater", trainer={"max_epochs": 3, "logger": "csv"})
    with pytest.raises(SparkDDPError, match="a fault in the second epoch") as caught:
        train.run(local_spark, asked, jobs.wanted)
    assert caught.value.code == "SDDP-404"
    logged = local(asked.directory) / "logs" / "csv" / "lightning_logs" / "version_0" / "metrics.csv"
    assert "val_mae" in logged.read_text()


def test_a_rate_that_cannot_be_found_is_told_before_training(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    with pytest.raises(SparkDDPError, match="no attribute or hyperparameter 'rate'") as caught:
        trained(local_spark, tmp_path, manifest, tune={"lr": {"attr_name": "rate"}})
    assert caught.value.code == "SDDP-415"
    assert not list(tmp_path.rglob("model.json"))

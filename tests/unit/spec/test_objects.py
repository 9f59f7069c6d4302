"""Loggers, profilers and plugins: how they may be written, and what is refused before Spark is asked."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sparkddp.spec.arguments import UNKNOWN
from airflow_provider_sparkddp.spec.compat import check_trainer
from airflow_provider_sparkddp.spec.objects import listed
from tests.support.refusals import refused

CSV = "pytorch_lightning.loggers:CSVLogger"
MLFLOW = "pytorch_lightning.loggers:MLFlowLogger"


def own(path: str, **kwargs: Any) -> dict[str, Any]:
    return {"$import": path, "kwargs": kwargs}


@pytest.mark.parametrize(
    "trainer",
    [
        {"logger": True},
        {"logger": "mlflow"},
        {"logger": ["csv", own(CSV, name="more", flush_logs_every_n_steps=1), "tensorboard"]},
        {"logger": own(MLFLOW, tracking_uri="https://mlflow.example.com", experiment_name="a")},
        {"logger": own(MLFLOW, tracking_uri="databricks")},
        {"logger": ["csv", UNKNOWN, own(CSV, name=UNKNOWN)]},
        {"profiler": "simple"},
        {"profiler": own("pytorch_lightning.profilers:AdvancedProfiler", line_count_restriction=0.5)},
        {"plugins": own("my_code:MyCheckpointIO")},
        {"plugins": [UNKNOWN]},
        {"fast_dev_run": 3},
    ],
    ids=str,
)
def test_each_form_is_taken_as_it_is_written(trainer: dict[str, Any]) -> None:
    assert check_trainer(trainer) == trainer


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("logger", "True", True),
        ("logger", "false", False),
        ("logger", "csv", "csv"),
        ("logger", "", None),
        ("profiler", "None", None),
        ("fast_dev_run", "3", 3),
    ],
)
def test_a_rendered_template_becomes_what_it_says(name: str, text: str, value: Any) -> None:
    assert check_trainer({name: text}) == {name: value}


@pytest.mark.parametrize(
    ("trainer", "code", "words"),
    [
        ({"logger": "cvs"}, "SDDP-101", "Did you mean 'csv'?"),
        ({"logger": {"class": CSV}}, "SDDP-101", "'$import'"),
        ({"logger": [own(CSV, save_dir="/tmp/x")]}, "SDDP-103", "sets 'save_dir'"),
        ({"logger": own("my_code:Logger", log_dir="/tmp/x")}, "SDDP-103", "sets 'log_dir'"),
        ({"logger": own(MLFLOW, tracking_uri="./mlruns")}, "SDDP-103", "lies on one executor"),
        ({"logger": own(MLFLOW, tracking_uri="sqlite:///mlflow.db")}, "SDDP-103", "lies on one executor"),
        ({"logger": own(MLFLOW, tracking_uri="https://me:secret@mlflow")}, "SDDP-111", "tracking_uri"),
        ({"logger": own("pytorch_lightning.loggers:CometLogger", api_key="abc")}, "SDDP-111", "'api_key'"),
        ({"profiler": "xla"}, "SDDP-101", "'simple', 'advanced', 'pytorch'"),
        ({"profiler": ["simple"]}, "SDDP-101", "Give one profiler"),
        ({"profiler": own("my_code:Profiler", dirpath="/tmp")}, "SDDP-103", "sets 'dirpath'"),
        ({"plugins": "deepspeed"}, "SDDP-101", "trainer['plugins'] holds 'deepspeed'"),
        ({"plugins": [own("lightning.pytorch.plugins.environments:SLURMEnvironment")]}, "SDDP-103", "comes from Spark"),
    ],
    ids=str,
)
def test_what_is_refused_says_why(trainer: dict[str, Any], code: str, words: str) -> None:
    with refused(code, words):
        check_trainer(trainer)


def test_a_secret_is_never_repeated() -> None:
    with pytest.raises(Exception, match="SDDP-111") as caught:
        check_trainer({"logger": own(MLFLOW, tracking_uri="https://me:hunter2@mlflow")})
    assert "hunter2" not in str(caught.value)


def test_one_or_several_are_a_list() -> None:
    assert [listed(value) for value in (None, False, True, "csv", ["csv", "csv"])] == [
        [],
        [],
        [True],
        ["csv"],
        ["csv", "csv"],
    ]


@pytest.mark.parametrize(
    ("trainer", "words"),
    [
        ({"accelerator": "cpu"}, "GPUs alone"),
        ({}, "GPUs alone"),
        ({"accelerator": "cuda", "strategy": "model_parallel"}, "Lightning ignores it there"),
        ({"accelerator": "cuda", "strategy": "single_device"}, "nobody to agree with"),
    ],
    ids=str,
)
def test_batchnorm_is_synchronised_only_where_that_happens(trainer: dict[str, Any], words: str) -> None:
    with refused("SDDP-104", "sync_batchnorm=True", words):
        check_trainer({"sync_batchnorm": True, **trainer})
    assert check_trainer({"sync_batchnorm": False, **trainer})["sync_batchnorm"] is False


@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "auto"])
def test_batchnorm_is_synchronised_on_gpus(strategy: str) -> None:
    assert check_trainer({"sync_batchnorm": "True", "accelerator": "cuda", "strategy": strategy})["sync_batchnorm"]

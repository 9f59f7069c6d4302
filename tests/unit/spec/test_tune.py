"""What `tune` asks for: Lightning's own names, checked before Spark is asked."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pytorch_lightning.tuner import Tuner

from airflow_provider_sparkddp.spec import jobs
from airflow_provider_sparkddp.spec.arguments import UNKNOWN
from airflow_provider_sparkddp.spec.checks.tune import TUNE
from tests.support.refusals import refused

GIVEN = {"partitions": "file:///m.json", "model": "my_models:Model", "features": ["a"], "target": "y"}


def checked(tune: Any, **trainer: Any) -> Any:
    return jobs.check(jobs.TRAIN, {**GIVEN, "tune": tune, "trainer": trainer})["tune"]


@pytest.mark.parametrize(("name", "method"), [("lr", Tuner.lr_find), ("batch_size", Tuner.scale_batch_size)])
def test_the_names_are_those_of_the_installed_lightning(name: str, method: Any) -> None:
    assert set(TUNE[name]) <= set(inspect.signature(method).parameters)


@pytest.mark.parametrize(
    ("tune", "asked"),
    [
        (None, {}),
        ("", {}),
        ({"lr": True, "batch_size": "power"}, {"lr": {}, "batch_size": {"mode": "power"}}),
        ("{'lr': true, 'batch_size': False}".replace("true", "True"), {"lr": {}}),
        ({"lr": "True", "batch_size": "None"}, {"lr": {}}),
        (
            {"lr": {"min_lr": "1e-5", "num_training": "50", "early_stop_threshold": None}},
            {"lr": {"min_lr": 1e-5, "num_training": 50, "early_stop_threshold": None}},
        ),
        (
            {"batch_size": {"mode": "binsearch", "max_val": 4096}},
            {"batch_size": {"mode": "binsearch", "max_val": 4096}},
        ),
        ({"lr": UNKNOWN, "batch_size": {"init_val": UNKNOWN}}, {"batch_size": {}}),
    ],
    ids=str,
)
def test_what_is_asked_for(tune: Any, asked: dict[str, Any]) -> None:
    assert checked(tune) == asked


@pytest.mark.parametrize(
    ("tune", "words"),
    [
        ({"learning_rate": True}, "a key of tune is 'learning_rate'"),
        ({"lr": {"lr_min": 1}}, "Did you mean 'min_lr'?"),
        ({"lr": {"min_lr": 1.0, "max_lr": 0.1}}, "from 1 to 0.1"),
        ({"lr": {"num_training": 5}}, "num_training=5 is too small"),
        ({"batch_size": "fast"}, "Allowed: power, binsearch"),
        ({"batch_size": {"batch_arg_name": "b"}}, "batch_arg_name"),
        ({"lr": 0.1}, "tune['lr']=0.1"),
    ],
    ids=str,
)
def test_what_is_not_known_is_refused(tune: Any, words: str) -> None:
    with refused("SDDP-101", words):
        checked(tune)


@pytest.mark.parametrize("trainer", [{"strategy": "model_parallel"}, {"fast_dev_run": True}], ids=str)
def test_what_cannot_be_tuned_is_refused(trainer: dict[str, Any]) -> None:
    with refused("SDDP-103", "tune is set"):
        checked({"lr": True}, **trainer)
    assert checked({"lr": False}, **trainer) == {}

"""Each Trainer argument is taken, converted, or refused with a reason and a remedy: none is ignored."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import pytorch_lightning

from airflow_provider_sparkddp.spec import compat, jobs
from airflow_provider_sparkddp.spec.arguments import CONVERTERS, UNKNOWN
from airflow_provider_sparkddp.spec.compat import check_not_built, check_trainer
from tests.support.refusals import refused


def test_the_trainer_arguments_are_those_of_the_installed_lightning() -> None:
    signature = inspect.signature(pytorch_lightning.Trainer.__init__)
    assert set(compat.TRAINER_ARGUMENTS) == set(signature.parameters) - {"self"}


def test_the_tables_name_only_what_exists() -> None:
    assert {*compat.DECIDED_BY_OPERATOR, *compat.NOT_BUILT_TRAINER} <= set(compat.TRAINER_ARGUMENTS)
    assert set(compat.TRAINER_ARGUMENTS.values()) <= set(CONVERTERS)
    assert all(name in jobs.ARGUMENTS[kind] for kind, name in compat.NOT_BUILT)


@pytest.mark.parametrize(
    ("name", "hint"), [("max_epoch", "'max_epochs'"), ("accelarator", "'accelerator'"), ("gpu", ""), (3, "")]
)
def test_an_unknown_argument_is_refused_with_the_nearest_name(name: Any, hint: str) -> None:
    with refused("SDDP-103", f"trainer[{name!r}]", hint, "lightning.pytorch.Trainer"):
        check_trainer({name: 1})


@pytest.mark.parametrize("name", compat.DECIDED_BY_OPERATOR)
def test_what_the_operator_decides_is_refused_saying_what_to_set_instead(name: str) -> None:
    with refused("SDDP-103", name, compat.DECIDED_BY_OPERATOR[name]):
        check_trainer({name: 1})


@pytest.mark.parametrize("name", compat.NOT_BUILT_TRAINER)
def test_a_trainer_argument_that_is_not_built_is_refused_and_may_be_switched_off(name: str) -> None:
    with refused("SDDP-102", name, "can't do that yet", f"Leave {name} out"):
        check_trainer({name: True})
    assert check_trainer({name: False}) == {name: False}
    assert check_trainer({name: None}) == {name: None}


def test_texts_are_converted_by_the_declared_types() -> None:
    rendered = {"max_epochs": "3", "gradient_clip_val": "0.5", "detect_anomaly": "False", "limit_train_batches": "1"}
    converted = check_trainer(rendered)
    assert converted == {
        "max_epochs": 3,
        "gradient_clip_val": 0.5,
        "detect_anomaly": False,
        "limit_train_batches": 1,
    }
    # For Lightning 1 is one batch and 1.0 all of them.
    assert type(converted["limit_train_batches"]) is int
    assert type(check_trainer({"limit_train_batches": "1.0"})["limit_train_batches"]) is float


@pytest.mark.parametrize("name", ["accelerator", "strategy", "precision", "max_epochs", "logger"])
def test_what_is_known_later_passes_while_the_dag_is_parsed(name: str) -> None:
    assert check_trainer({name: UNKNOWN}) == {name: UNKNOWN}


@pytest.mark.parametrize(("kind", "name"), compat.NOT_BUILT)
def test_an_argument_that_is_not_built_is_refused_and_never_ignored(kind: str, name: str) -> None:
    with refused("SDDP-102", f"{name}='x' is set", compat.NOT_BUILT[kind, name]):
        check_not_built(kind, {name: "x"})
    for unset in (None, {}, []):
        check_not_built(kind, {name: unset})

"""Hardware, strategy and precision: every value and combination is taken, or refused with a reason and a remedy."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sparkddp.spec import seams
from airflow_provider_sparkddp.spec.arguments import UNKNOWN
from airflow_provider_sparkddp.spec.compat import check_trainer
from tests.support.refusals import refused


def test_every_combination_is_taken_or_refused_with_its_reason() -> None:
    taken, refusals, later = 0, 0, 0
    for values in seams.combinations():
        trainer = dict(zip(seams.VALUES, values, strict=True))
        rule = seams.refusal(*values)
        if rule:
            refusals += 1
            with refused("SDDP-104", *(repr(value) for value in values), rule.reason, rule.remedy):
                check_trainer(trainer)
        elif seams.is_built(*values):
            taken += 1
            assert check_trainer(trainer) == trainer
        else:
            later += 1
            with refused("SDDP-102", "can't do that yet"):
                check_trainer(trainer)
    assert min(taken, refusals, later) > 0
    assert taken + refusals + later == len(seams.ACCELERATORS) * len(seams.STRATEGIES) * len(seams.PRECISIONS)


def test_every_rule_names_what_exists_and_refuses_something_that_no_earlier_one_does() -> None:
    decided = {seams.refusal(*values) for values in seams.combinations()}
    assert decided == {*seams.RULES, None}
    for rule in seams.RULES:
        assert set(rule.accelerators) <= set(seams.ACCELERATORS)
        assert set(rule.strategies) <= set(seams.STRATEGIES)
        assert set(rule.precisions) <= set(seams.PRECISIONS)


def test_auto_is_refused_where_one_of_the_hardware_that_it_may_become_is() -> None:
    for strategy in seams.STRATEGIES:
        for precision in seams.PRECISIONS:
            either = any(seams.refusal(each, strategy, precision) for each in ("cpu", "cuda"))
            assert bool(seams.refusal("auto", strategy, precision)) == either


@pytest.mark.parametrize(
    ("trainer", "told"),
    [
        ({"accelerator": "tpu"}, "Use cuda or cpu"),
        ({"accelerator": "cude"}, "Did you mean 'cuda'?"),
        ({"strategy": "ddpp"}, "Did you mean 'ddp'?"),
        ({"strategy": {"$import": "a.b:C"}}, "Allowed: auto, single_device, ddp"),
        ({"precision": "bf16-mixd"}, "Did you mean 'bf16-mixed'?"),
        ({"precision": ["32"]}, "not known"),
        ({"precision": 8}, "not known"),
        ({"precision": "16-mixed"}, "quietly runs it as bf16-mixed"),
        ({"precision": "16-true", "accelerator": "cpu"}, "become NaN"),
        ({"precision": 16, "accelerator": None}, "accelerator='cuda'"),
    ],
    ids=str,
)
def test_what_is_refused_says_why_and_what_to_use(trainer: dict[str, Any], told: str) -> None:
    with refused("SDDP-104", told):
        check_trainer(trainer)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in seams.FORMER.items() for value in values]
)
def test_a_name_of_earlier_days_is_refused_naming_its_successor(name: str, value: str) -> None:
    with refused("SDDP-104", repr(value), "earlier days", f"Use {seams.FORMER[name][value]}."):
        check_trainer({name: value})


@pytest.mark.parametrize(
    ("name", "short", "full"),
    [
        ("precision", None, "32-true"),
        ("precision", 32, "32-true"),
        ("precision", "64", "64-true"),
        ("precision", 16, "16-mixed"),
        ("precision", "bf16", "bf16-mixed"),
        ("accelerator", "gpu", "cuda"),
        ("accelerator", None, "auto"),
    ],
)
def test_lightning_s_other_names_mean_the_same(name: str, short: Any, full: str) -> None:
    assert seams.normal(name, short) == full
    assert seams.normal(name, full) == full


@pytest.mark.parametrize("name", seams.VALUES)
def test_what_is_known_later_passes_now(name: str) -> None:
    assert check_trainer({name: UNKNOWN, "max_epochs": 1}) == {name: UNKNOWN, "max_epochs": 1}

"""Hardware, strategy and precision: every value and combination is taken, or refused with a reason and a remedy."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sparkddp.spec import seams
from airflow_provider_sparkddp.spec.arguments import UNKNOWN
from airflow_provider_sparkddp.spec.compat import FORMER_ARGUMENTS, check_trainer
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support.refusals import refused


def test_every_combination_is_taken_or_refused_with_its_reason() -> None:
    taken, refusals = 0, 0
    for values in seams.combinations():
        trainer = dict(zip(seams.VALUES, values, strict=True))
        rule = seams.refusal(*values)
        if rule:
            refusals += 1
            with refused("SDDP-104", *(repr(value) for value in values), rule.reason, rule.remedy):
                check_trainer(trainer)
        else:
            taken += 1
            assert check_trainer(trainer) == trainer
    assert min(taken, refusals) > 0
    assert taken + refusals == len(seams.ACCELERATORS) * len(seams.STRATEGIES) * len(seams.PRECISIONS)


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
        ({"strategy": {"import": "a.b:C"}}, "Allowed: auto, single_device, ddp"),
        ({"strategy": "ddp_spawned"}, "and your own as {'$import': 'pkg.mod:Class', 'kwargs': {…}}"),
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


OWN = {"$import": "mine:Mine", "kwargs": {"size": 1}}


@pytest.mark.parametrize("name", seams.VALUES)
def test_ones_own_is_taken_with_everything_that_no_rule_refuses(name: str) -> None:
    others = {"accelerator": "cuda", "strategy": "ddp", "precision": "bf16-mixed"}
    assert check_trainer(others | {name: OWN}) == others | {name: OWN}


def test_ones_own_does_not_lift_a_rule_that_it_is_not_part_of() -> None:
    with refused("SDDP-104", "'mine:Mine'", "become NaN"):
        check_trainer({"accelerator": "cpu", "strategy": OWN, "precision": "16-true"})


@pytest.mark.parametrize(
    ("trainer", "most"),
    [
        ({"strategy": "single_device"}, 1),
        ({"accelerator": "mps"}, 1),
        ({"accelerator": "cpu"}, 9),
        ({}, 9),
        ({"strategy": OWN}, 9),
    ],
    ids=str,
)
def test_what_trains_one_rank_is_refused_for_more(trainer: dict[str, Any], most: int) -> None:
    seams.require_ranks(trainer, most)
    if most == 1:
        with refused("SDDP-104", "num_nodes x devices is 2", "Set num_nodes=1"):
            seams.require_ranks(trainer, 2)


@pytest.mark.parametrize("name", FORMER_ARGUMENTS)
def test_an_argument_of_earlier_days_is_refused_naming_its_successor(name: str) -> None:
    with refused("SDDP-103", repr(name), "earlier days", FORMER_ARGUMENTS[name]):
        check_trainer({name: 1})


@pytest.mark.parametrize("name", ["dp", "ddp2", "ddp_spawn", "ddp_sharded", "rpc", "horovod"])
def test_every_strategy_of_the_refactor_s_time_has_its_successor(name: str) -> None:
    assert name in seams.FORMER["strategy"]


@pytest.mark.parametrize("values", [{"precision": "apex"}, {"amp_backend": "apex"}, {"amp_backend": "native"}], ids=str)
def test_apex_and_native_amp_have_theirs(values: dict[str, str]) -> None:
    with pytest.raises(SparkDDPError, match="earlier days.*16-mixed"):
        check_trainer(values)

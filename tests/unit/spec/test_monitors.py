"""early_stopping and best_weights: a metric's name or more, and nothing is watched where there is no validation."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pytorch_lightning.callbacks import EarlyStopping

from airflow_provider_sparkddp.spec import jobs
from airflow_provider_sparkddp.spec.arguments import CONVERTERS, UNKNOWN
from airflow_provider_sparkddp.spec.checks.train import EARLY_STOPPING, require_validation
from tests.support.refusals import refused


def checked(**values: Any) -> dict[str, Any]:
    given = {"partitions": "file:///m.json", "model": "m:Net", "features": ["a"], "target": "y", **values}
    return jobs.check(jobs.TRAIN, given)


def test_the_arguments_of_early_stopping_are_lightnings_own() -> None:
    assert set(EARLY_STOPPING) == set(inspect.signature(EarlyStopping.__init__).parameters) - {"self"}
    assert set(EARLY_STOPPING.values()) <= set(CONVERTERS)


@pytest.mark.parametrize("argument", ["early_stopping", "best_weights"])
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("val_mae", {"monitor": "val_mae", "mode": "min"}),
        ({"monitor": "auc", "mode": "max"}, {"monitor": "auc", "mode": "max"}),
        ("{'monitor': 'auc', 'mode': 'max'}", {"monitor": "auc", "mode": "max"}),
        (None, None),
        ("", None),
        ("None", None),
        ({}, None),
    ],
)
def test_a_name_a_dict_or_what_a_template_makes_of_them(argument: str, written: Any, meant: Any) -> None:
    assert checked(**{argument: written})[argument] == meant


def test_texts_are_converted_and_what_is_known_later_passes() -> None:
    rendered = {"monitor": "v", "patience": "2", "min_delta": "1e-3", "strict": "False", "stopping_threshold": None}
    meant = {"monitor": "v", "patience": 2, "min_delta": 1e-3, "strict": False, "stopping_threshold": None}
    assert checked(early_stopping=rendered)["early_stopping"] == meant | {"mode": "min"}
    assert "early_stopping" not in checked(early_stopping=UNKNOWN)
    assert checked(best_weights={"monitor": UNKNOWN})["best_weights"]["monitor"] is UNKNOWN


def test_nothing_is_watched_where_there_is_no_validation() -> None:
    for argument in ("early_stopping", "best_weights"):
        arguments = checked(**{argument: "val_mae"})
        with refused("SDDP-101", f"{argument} watches 'val_mae'", "no rows for validation", "validation=0.1"):
            require_validation(arguments, 0)
        require_validation(arguments, 1)
    require_validation(checked(), 0)
    require_validation(checked(early_stopping={"monitor": "train_mae", "check_on_train_epoch_end": True}), 0)

"""Every logged metric is kept, evenly thinned where there are too many."""

from __future__ import annotations

import math

import torch

from airflow_provider_sparkddp.runtime.progress import history
from airflow_provider_sparkddp.runtime.progress.history import History


def test_metrics_are_columns_in_the_order_of_the_steps() -> None:
    logged = History()
    logged.add(10, 0, "loss", torch.tensor(0.5))
    logged.add(20, 1, "loss", math.inf)
    logged.add(15, 0, "lr", 3)
    assert logged.to_json() == {
        "step": [10, 15, 20],
        "epoch": [0, 0, 1],
        "name": ["loss", "lr", "loss"],
        "value": [0.5, 3.0, None],
        "thinned": {},
        "names_left_out": 0,
    }


def test_nothing_logged_is_no_row() -> None:
    assert History().to_json()["step"] == []


def test_a_long_series_is_thinned_evenly_and_says_so() -> None:
    logged = History()
    for step in range(10_000):
        logged.add(step, 0, "loss", step / 2)
    told = logged.to_json()
    every = told["thinned"]["loss"]
    assert told["step"] == list(range(0, 10_000, every))
    assert told["value"] == [step / 2 for step in told["step"]]
    assert history.POINTS_OF_A_NAME / 2 <= len(told["step"]) <= history.POINTS_OF_A_NAME


def test_many_names_share_the_room_and_too_many_are_counted() -> None:
    logged = History()
    for name in range(history.NAMES + 5):
        for step in range(100):
            logged.add(step, 0, f"metric {name}", 1.0)
    told = logged.to_json()
    assert len(told["step"]) <= history.POINTS
    assert len(set(told["name"])) == history.NAMES
    assert told["names_left_out"] == 5
    assert set(told["thinned"].values()) == {8}

"""What is measured is the rank's own: its waiting for data and its own step, and nothing about the loader or module changes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from lightning_utilities.core.overrides import is_overridden
from pytorch_lightning import LightningModule

from airflow_provider_sparkddp.runtime.training.callbacks import meter as meters
from airflow_provider_sparkddp.runtime.training.callbacks.meter import Meter, peak_resident
from airflow_provider_sparkddp.runtime.training.callbacks.recorder import rows_in
from tests.support.tiny_model import Line

CPU = torch.device("cpu")


class Clock:
    """Stands still but for the work that is done by it."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(meters, "time", made)
    return made


class Slow:
    """A loader whose batches take two seconds each."""

    sampler = "its own"

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[int]:
        for number in range(3):
            self.clock.work(2)
            yield number


def test_the_wait_for_batches_is_counted_and_the_loader_stays_what_it_is(clock: Clock) -> None:
    meter = Meter()
    loader = meter.loader(Slow(clock))
    for _ in range(2):
        seen = []
        for batch in loader:
            clock.work(100)  # the step; no matter of the loader's
            seen.append(batch)
        assert seen == [0, 1, 2]
    assert meter.data_seconds == 12
    assert (len(loader), loader.sampler) == (3, "its own")


def test_the_steps_are_timed_but_for_the_first(clock: Clock) -> None:
    meter = Meter()
    meter.begin(CPU, 3)
    step = meter.step(clock.work)
    step(20)
    assert meter.step_seconds == 0
    step(5)
    clock.work(100)
    step(6)
    assert meter.step_seconds == 11


def test_a_step_that_raises_raises_its_own_error() -> None:
    def step() -> None:
        raise ValueError("mine")

    timed = Meter().step(step)
    for _ in range(2):
        with pytest.raises(ValueError, match="mine"):
            timed()


def test_lightning_still_sees_the_users_step() -> None:
    module: Any = Line()
    module.training_step = Meter().step(module.training_step)
    assert is_overridden("training_step", module, LightningModule)


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="the system doesn't let the peak begin anew"
)
def test_the_peak_of_memory_is_that_of_the_training() -> None:
    held = np.ones(200_000_000, dtype=np.uint8)
    assert held[-1] == 1
    del held
    before = peak_resident()
    meter = Meter()
    meter.begin(CPU, 1)
    after = meter.memory()
    assert after["gpu_memory_bytes"] is None
    assert 10_000_000 < (after["memory_bytes"] or 0) < before - 100_000_000


@pytest.mark.parametrize(
    ("batch", "rows"),
    [
        ((torch.ones(3, 2), torch.ones(3)), 3),
        ([torch.ones(3)], 3),
        (torch.ones(4, 2), 4),
        ({"x": torch.ones(5, 2)}, 5),
        ([[torch.ones(6)]], 1),
        (torch.tensor(1.0), 0),
        (None, 0),
        ((), 0),
        (7, 0),
    ],
)
def test_rows_of_any_batch(batch: Any, rows: int) -> None:
    assert rows_in(batch) == rows

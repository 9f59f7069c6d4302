"""What ranks logged becomes one value over all rows, or none; and the places in Lightning that this is done at exist."""

from __future__ import annotations

import inspect
import math

import pytest
from pytorch_lightning import Trainer
from pytorch_lightning.loops.training_epoch_loop import _TrainingEpochLoop
from pytorch_lightning.trainer.connectors.logger_connector import result
from pytorch_lightning.trainer.connectors.logger_connector.logger_connector import _LoggerConnector
from torchmetrics import Metric

from airflow_provider_sparkddp.runtime.training.callbacks.shared_metrics import ITSELF, OWN, Part, agreed, combined


def parts(how: str, *values: float, weights: tuple[float, ...] = (1, 1, 1)) -> list[Part]:
    return [Part(("x",), how, value, weight) for value, weight in zip(values, weights, strict=False)]


@pytest.mark.parametrize(
    ("how", "values", "weights", "expected"),
    [
        ("mean", (6.0, 1.0), (3, 1), 1.75),
        ("mean", (0.0, 0.0), (0, 0), math.nan),
        ("sum", (2.0, 3.0, 4.0), (1, 1, 1), 9.0),
        ("min", (2.0, -3.0), (1, 1), -3.0),
        ("max", (2.0, 5.0), (1, 1), 5.0),
        ("min", (1.0, math.nan), (1, 1), math.nan),
        ("max", (math.nan, 1.0), (1, 1), math.nan),
    ],
)
def test_values_are_brought_together_as_they_were_logged(
    how: str, values: tuple[float, ...], weights: tuple[float, ...], expected: float
) -> None:
    assert combined(parts(how, *values, weights=weights)) == pytest.approx(expected, nan_ok=True)


def test_a_value_that_cannot_be_brought_together_is_none() -> None:
    assert combined(parts(OWN, 1.0, 2.0)) is None
    assert combined([*parts("mean", 1.0), *parts("sum", 1.0)]) is None


def test_what_not_every_rank_has_is_left_out_naming_who_has_it() -> None:
    mean, synced = Part(("a",), "mean", 2.0, 1.0), Part(("s",), ITSELF)
    together, left = agreed([{"a": mean, "s": synced, "z": mean}, {"a": mean, "s": synced, "y": synced}])
    assert together == {"a": 2.0, "s": ITSELF}
    assert left == {"z": [0], "y": [1]}


def test_lightning_has_the_private_names_that_this_stands_on() -> None:
    trainer = Trainer(logger=False, enable_checkpointing=False, accelerator="cpu")
    loop = trainer.fit_loop.epoch_loop
    assert type(trainer._logger_connector) is _LoggerConnector
    assert [type(each._results) for each in (loop, loop.val_loop)] == [result._ResultCollection] * 2
    assert list(inspect.signature(result._ResultCollection.__init__).parameters) == ["self", "training"]
    taken = {
        result._ResultCollection: {"_extract_batch_size", "update_metrics", "_get_cache", "_forked_name", "metrics"},
        _LoggerConnector: {"epoch_end_reached", "on_epoch_end", "on_batch_end"},
        _TrainingEpochLoop: {"_should_accumulate", "_is_training_done"},
    }
    for kind, names in taken.items():
        assert names <= set(vars(kind))
    assert loop._batches_that_stepped == 0
    metric = result._ResultMetric(result._Metadata("training_step", "x", _sync=result._Sync()), is_tensor=True)
    assert not metric.has_reset and not metric.meta.sync.should and metric.meta.sync.rank_zero_only is False
    assert metric.meta.reduce_fx.__name__ == "mean" and metric._forward_cache is None
    assert {"dist_sync_on_step", "sync_on_compute"} <= set(inspect.getsource(Metric.__init__).split('"'))

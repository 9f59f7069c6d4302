"""What a sharded training leaves: the whole state and the answers on a sample, taken while all ranks still hold their parts."""

from __future__ import annotations

from typing import Any

from airflow_provider_sparkddp.runtime.models.predict import forward
from airflow_provider_sparkddp.runtime.training.lightning_names import callback
from airflow_provider_sparkddp.runtime.training.strategies import sharded


class _Harvest:
    """The callback's body.

    Attributes:
        state: name -> tensor on the CPU, on rank 0.
        predictions: for the sample of rank 0, as `forward` gives them.
    """

    def __init__(self, sample: Any) -> None:
        super().__init__()
        self.sample = sample
        self.state: dict[str, Any] = {}
        self.predictions: Any = None

    def on_train_end(self, trainer: Any, module: Any) -> None:
        strategy = trainer.strategy
        x = strategy.broadcast(self.sample, src=0).to(strategy.root_device)
        self.predictions = forward(module, x, lambda part: sharded.answers(strategy, module, part)).cpu()
        self.state = sharded.whole(strategy, module)


def harvest(package: str, sample: Any) -> Any:
    """A Callback of the given Trainer's package."""
    return callback(package, _Harvest, sample)

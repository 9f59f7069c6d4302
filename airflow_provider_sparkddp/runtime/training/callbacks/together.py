"""Several guards as one callback: Lightning calls each hook of each callback at every step, also those that do nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from airflow_provider_sparkddp.runtime.training.lightning_names import callback


def together(package: str, guards: Sequence[Any], monitor: str | None) -> Any:
    """A Callback of the given Trainer's package, whose hooks call those of the guards in their order.

    Args:
        monitor: the metric that one of them decides by, where Lightning's own callbacks have it.
    """
    hooks = {name for each in guards for name in dir(each) if name == "setup" or name.startswith("on_")}
    return callback(package, type("Guards", (), {"monitor": monitor, **{name: _hook(name, guards) for name in hooks}}))


def _hook(name: str, guards: Sequence[Any]) -> Callable[..., None]:
    calls = [getattr(each, name) for each in guards if hasattr(each, name)]

    def hook(self: Any, *arguments: Any, **named: Any) -> None:
        for call in calls:
            call(*arguments, **named)

    return hook

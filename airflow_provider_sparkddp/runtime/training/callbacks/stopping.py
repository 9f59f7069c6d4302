"""Early stopping: Lightning's own, whose monitor must be there."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.runtime.training.callbacks.missing import require_logged


class _Stopping:
    """Tells a missing monitor with a code, where Lightning has a RuntimeError."""

    monitor: str
    strict: bool

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        self._checked("on_train_epoch_end", trainer, module)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        self._checked("on_validation_end", trainer, module)

    def _checked(self, hook: str, trainer: Any, module: Any) -> None:
        try:
            getattr(super(), hook)(trainer, module)
        except RuntimeError:
            require_logged(self.monitor, "early_stopping", trainer.callback_metrics)
            raise


def early_stopping(package: str, arguments: Mapping[str, Any]) -> Any:
    """EarlyStopping of the given Trainer's package, with its own arguments."""
    base = importlib.import_module(f"{package}.callbacks").EarlyStopping
    return type("EarlyStopping", (_Stopping, base), {})(**arguments)

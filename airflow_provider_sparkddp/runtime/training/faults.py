"""Errors of Lightning and torch that a user can do something about, in words that say what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow_provider_sparkddp.runtime.training.callbacks.learning import Learning, unused_parameters
from airflow_provider_sparkddp.spec.errors import SparkDDPError

NO_LOSS = "Skipping the `training_step` by returning None"


@contextmanager
def explained(trainer: Any, learning: Learning) -> Iterator[None]:
    """Around `trainer.fit`.

    Args:
        learning: of the same training; knows what DDP said.

    Raises:
        SparkDDPError: SDDP-411 and SDDP-412 where torch or Lightning raise a RuntimeError.
    """
    try:
        yield
    except RuntimeError as error:
        if learning.unused:
            raise unused_parameters(learning.unused, len(learning.parameters), trainer.global_rank) from error
        if str(error).startswith(NO_LOSS):
            where = f"rank {trainer.global_rank}, epoch {trainer.current_epoch}, step {trainer.global_step}"
            raise SparkDDPError(
                "SDDP-412",
                f"training_step returned None on {where}; the other ranks wait for its gradients.",
                "Return a loss for every batch; for a batch without one, return 0 * self(x).sum().",
            ) from error
        raise

"""What a training changes in its Python worker is put back: Spark gives the same process to the next job."""

from __future__ import annotations

import logging
import os
import random
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

# Lightning tells of hardware and products at INFO, on every rank; our own lines say what matters.
_CHATTY = ("pytorch_lightning", "lightning.pytorch", "lightning_fabric", "lightning.fabric")


def quiet_lightning() -> None:
    """After Lightning is imported, which sets these levels."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


@contextmanager
def isolated(environment: Mapping[str, str], threads: int) -> Iterator[None]:
    """Run with these environment variables and CPU threads; afterwards the process is as it was before."""
    import numpy as np
    import torch

    # Lightning keeps the process's rank as an attribute of this function.
    from lightning_utilities.core.rank_zero import rank_zero_only

    lightnings_rank: Any = rank_zero_only
    before_environment, before_hook = dict(os.environ), sys.excepthook
    before_threads, before_random = torch.get_num_threads(), random.getstate()
    before_numpy, before_torch = np.random.get_state(), torch.get_rng_state()
    before_deterministic = torch.are_deterministic_algorithms_enabled()
    before_rank = getattr(lightnings_rank, "rank", 0)
    os.environ.update(environment)
    torch.set_num_threads(threads)
    try:
        with warnings.catch_warnings():
            yield
    finally:
        os.environ.clear()
        os.environ.update(before_environment)
        sys.excepthook = before_hook
        torch.set_num_threads(before_threads)
        random.setstate(before_random)
        np.random.set_state(before_numpy)
        torch.set_rng_state(before_torch)
        torch.use_deterministic_algorithms(before_deterministic)
        # Lightning sets it once, when it is imported, and needs it ever after.
        lightnings_rank.rank = before_rank

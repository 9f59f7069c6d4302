"""What a training changes in its Python worker is put back: Spark gives the same process to the next job."""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
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
    import torch

    put_back = [*_of_process(), *_of_numbers(), _of_logging(), _of_lightning()]
    os.environ.update(environment)
    torch.set_num_threads(threads)
    try:
        with warnings.catch_warnings():
            yield
    finally:
        for restore in put_back:
            restore()


def _of_process() -> Iterator[Callable[[], None]]:
    environment, hook, folder = dict(os.environ), sys.excepthook, Path.cwd()
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}

    def restore() -> None:
        os.environ.clear()
        os.environ.update(environment)
        sys.excepthook = hook
        os.chdir(folder)

    def restore_signals() -> None:
        # Only the main thread may set one; a handler that isn't Python's own is read as None.
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)

    yield from (restore, restore_signals)


def _of_numbers() -> Iterator[Callable[[], None]]:
    """Random streams, and what decides how torch computes."""
    import numpy as np
    import torch

    yield partial(random.setstate, random.getstate())
    yield partial(np.random.set_state, np.random.get_state())
    yield partial(torch.set_rng_state, torch.get_rng_state())
    yield partial(torch.set_num_threads, torch.get_num_threads())
    yield partial(torch.set_default_dtype, torch.get_default_dtype())
    yield partial(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
    yield partial(setattr, torch.backends.cudnn, "benchmark", torch.backends.cudnn.benchmark)
    yield partial(setattr, torch.backends.cudnn, "deterministic", torch.backends.cudnn.deterministic)
    yield partial(_set_deterministic, torch.are_deterministic_algorithms_enabled())


def _set_deterministic(wanted: bool) -> None:
    import torch

    # Setting it imports torch's compiler, which takes seconds.
    if torch.are_deterministic_algorithms_enabled() != wanted:
        torch.use_deterministic_algorithms(wanted)


def _of_logging() -> Callable[[], None]:
    known = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    before = [(each, each.level, list(each.handlers), each.propagate) for each in (logging.root, *known)]

    def restore() -> None:
        for each, level, handlers, propagate in before:
            each.setLevel(level)
            each.handlers[:] = handlers
            each.propagate = propagate

    return restore


def _of_lightning() -> Callable[[], None]:
    # Lightning keeps the process's rank as an attribute of this function: set once, when it is imported, and needed ever after.
    from lightning_utilities.core.rank_zero import rank_zero_only

    kept: Any = rank_zero_only
    return partial(setattr, kept, "rank", getattr(kept, "rank", 0))

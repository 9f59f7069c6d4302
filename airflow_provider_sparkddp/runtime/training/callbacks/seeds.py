"""Random streams: the ranks start from the same weights, and draw different numbers from then on."""

from __future__ import annotations

import hashlib
import random
from typing import Any


def stream(seed: int, epoch: int, rank: int) -> int:
    """What a rank's generators begin an epoch with."""
    return int.from_bytes(hashlib.sha256(f"random/{seed}/{epoch}/{rank}".encode()).digest()[:7], "big")


class Seeds:
    """Python, numpy, torch and CUDA, at each epoch; validation draws from a stream that is then forgotten."""

    def __init__(self, seed: int, rank: int) -> None:
        self.seed, self.rank = seed, rank
        self.before: Any = None

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        import numpy as np
        import torch

        chosen = stream(self.seed, trainer.current_epoch, self.rank)
        random.seed(chosen)
        np.random.seed(chosen % 2**32)
        torch.manual_seed(chosen)

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        self.before = _states(trainer.strategy.root_device)

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        _restore(self.before, trainer.strategy.root_device)


def _states(device: Any) -> tuple[Any, ...]:
    import numpy as np
    import torch

    cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return random.getstate(), np.random.get_state(), torch.get_rng_state(), cuda


def _restore(states: tuple[Any, ...], device: Any) -> None:
    import numpy as np
    import torch

    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])
    if states[3] is not None:
        torch.cuda.set_rng_state(states[3], device)

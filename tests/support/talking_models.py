"""Lightning modules that say much, are slow, or end without a word: for tests of what a user sees."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from tests.support.tiny_model import Line

log = logging.getLogger(__name__)


class Talks(Line):
    """Prints, records and warns on every rank, alike and of its own; logs a metric of each step and of each epoch."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if batch_idx == 0:
            print(f"print of rank {self.global_rank}")
            print(f"stderr of rank {self.global_rank}", file=sys.stderr)
            log.info("info of rank %d", self.global_rank)
            warnings.warn("the same on every rank", UserWarning, stacklevel=1)
        if batch_idx == 1 and self.global_rank == 1:
            log.error("only here")
        loss = super().training_step(batch, batch_idx)
        self.log("step_loss", loss, on_step=True, on_epoch=False)
        self.log("both", loss, on_step=True, on_epoch=True, sync_dist=True)
        return loss


class Slow(Line):
    """The last rank's own step takes a twentieth of a second longer."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if self.global_rank == self.trainer.world_size - 1:
            end = time.perf_counter() + 0.05
            while time.perf_counter() < end:
                pass
        return super().training_step(batch, batch_idx)


class Killed(Line):
    """Rank 1 says something and ends without a word once that is on storage; `folder` is where the logs lie."""

    def __init__(self, folder: str, num_features: int = 2) -> None:
        super().__init__(num_features)
        self.folder = folder

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if self.global_rank == 1:
            print("the last words", flush=True)
            while not any(b"the last words" in path.read_bytes() for path in Path(self.folder).rglob("rank-00001.log")):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        return super().training_step(batch, batch_idx)

"""What a case is given, and why one may say that it can't be measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def said(line: str) -> None:
    """A line of progress, with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


class NotMeasurable(Exception):
    """What the case measures isn't there; the text says what is missing."""


@dataclass(frozen=True)
class Setup:
    """How much is measured, and where.

    Attributes:
        rows: of the case's table; a case scales what else it needs from it.
        repeat: timed rounds, after one that isn't timed.
        scratch: a folder of this run, deleted when it ends.
        master: of Spark; ranks: into how many shares a table is partitioned.
        driver_memory: Spark's spark.driver.memory; on a local master the tasks live in it too.
    """

    rows: int
    repeat: int
    scratch: Path
    master: str = "local[2]"
    driver_memory: str = "4g"
    ranks: int = 4
    tell: Callable[[str], None] = field(default=said)

    def conditions(self, **more: Any) -> dict[str, Any]:
        """For the record of a case that runs on Spark."""
        fixed = {"ranks": self.ranks, "rounds": self.repeat, "master": self.master}
        return {"rows": self.rows, **more, **fixed, "spark.driver.memory": self.driver_memory}

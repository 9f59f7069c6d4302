"""A line now and then that says how far Spark's tasks are: a long write is otherwise silent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

EVERY_SECONDS = 10.0


@contextmanager
def stages_told(
    spark: Any, what: str, every: float = EVERY_SECONDS, tell: Callable[[str], None] | None = None
) -> Iterator[None]:
    """While the block runs, `write partitions · 14/28 tasks, 4 running · 12 s` every so many seconds; trouble is ignored."""
    done, started = threading.Event(), monotonic()

    def follow() -> None:
        while not done.wait(every):
            # The session may be about to end, or be of a kind that can't be asked.
            with suppress(Exception):
                line = stages_line(spark.sparkContext.statusTracker())
                if line:
                    (tell or _print)(f"sparkddp: {what} · {line} · {monotonic() - started:.0f} s")

    thread = threading.Thread(target=follow, name="sparkddp-stages", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=5)


def stages_line(tracker: Any) -> str:
    """Tasks of the active stages, done, in all, and running; "" when there is no stage."""
    stages = [info for info in map(tracker.getStageInfo, tracker.getActiveStageIds()) if info]
    total = sum(info.numTasks for info in stages)
    if not total:
        return ""
    ended = sum(info.numCompletedTasks for info in stages)
    return f"{ended:,}/{total:,} tasks, {sum(info.numActiveTasks for info in stages):,} running"


def _print(line: str) -> None:
    print(line, flush=True)

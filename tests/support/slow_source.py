"""A source whose rows come to a stand in the midst of the write, so that a test can kill the job there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any


def rows(spark: Any, count: int, started: str) -> Any:
    """`count` rows in four partitions; the last one tells the pipe `started` that it is half-way, and waits to be killed."""
    frame = spark.range(0, count, 1, 4).selectExpr("id", "id / 2.0d AS x")
    return frame.mapInArrow(partial(_stop_half_way, started=started, last=count - 1), "id long, x double")


def _stop_half_way(batches: Iterator[Any], started: str, last: int) -> Iterator[Any]:
    for batch in batches:
        half = batch.num_rows // 2
        yield batch.slice(0, half)
        if last in batch.column("id").to_pylist():
            with open(started, "w") as pipe:  # noqa: PTH123
                pipe.write("half-way")
            # Nobody ever sets it: only a signal ends this.
            threading.Event().wait()
        yield batch.slice(half)

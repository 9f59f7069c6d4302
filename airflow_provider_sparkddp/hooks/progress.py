"""Tells the task's log how a training goes, from the small files that rank 0 writes."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError

POLL_SECONDS = 2.0


class ProgressTail:
    """A context in which new progress events are logged as they appear; trouble with them never disturbs the task."""

    def __init__(self, folder: str, log: Callable[[str], None]) -> None:
        self._folder, self._log = folder, log
        self._seen = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="sparkddp-progress", daemon=True)

    def __enter__(self) -> ProgressTail:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=10)

    def _follow(self) -> None:
        while True:
            last = self._done.wait(POLL_SECONDS)
            # A file that is being written, or storage that hiccups: the next look will do.
            with contextlib.suppress(SparkDDPError, OSError, ValueError, LookupError, TypeError, AttributeError):
                self._tell_new()
            if last:
                return

    def _tell_new(self) -> None:
        # A writer that died half-way leaves files of other names, which must not be counted.
        events = [name for name in storage.names(self._folder) if name.endswith(".json")]
        for name in events[self._seen :]:
            self._log(line(json.loads(storage.read_text(paths.join(self._folder, name)))))
            self._seen += 1


def line(event: dict[str, Any]) -> str:
    """`epoch 2/10 · step 400/1200 · loss 0.183 · val_mae 12.1 · 41,200 rows/s · 33 s`."""
    total = f"/{event['epochs']}" if event.get("epochs") else ""
    figures = [f"{name} {value:.4g}" for name, value in event["metrics"].items() if value is not None]
    parts = [f"epoch {event['epoch']}{total}", f"step {event['step']}/{event['steps']}", *figures]
    return " · ".join([*parts, f"{event['rows_per_second']:,} rows/s", f"{event['seconds']:g} s"])

"""Tells the task's log how a training goes, from the small files that the ranks write."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError

POLL_SECONDS = 2.0
# Different warnings and errors in the task's log; all of them stand in the ranks' logs.
NOTICES = 20
RANKS_NAMED = 8


class ProgressTail:
    """A context in which new progress events are logged as they appear; trouble with them never disturbs the task.

    Args:
        log: called with the level ("info", "warning", "error") and a line.
    """

    def __init__(self, folder: str, log: Callable[[str, str], None]) -> None:
        self._folder, self._log = folder, log
        self._seen: set[str] = set()
        self._notices = Notices()
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
            with contextlib.suppress(SparkDDPError, OSError):  # storage that hiccups: the next look will do
                self._tell_new()
            if last:
                for level, line_ in self._notices.due(last=True):
                    self._log(level, line_)
                return

    def _tell_new(self) -> None:
        # What a writer that died half-way left behind has another name.
        new = [name for name in storage.names(self._folder) if name.endswith(".json") and name not in self._seen]
        for name in new:
            text = storage.read_text(paths.join(self._folder, name))
            self._seen.add(name)
            # One that can't be understood must not hide the next ones.
            with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError):
                body = json.loads(text)
                if "text" in body:
                    self._notices.add(body)
                else:
                    self._log("info", line(body))
        for level, told in self._notices.due():
            self._log(level, told)


class Notices:
    """Warnings and errors of the ranks: the same text once, with the ranks that told it.

    Ranks tell the same thing at nearly the same time, so that a new text waits for the next look before it is told.
    """

    def __init__(self) -> None:
        self._new: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._waiting: dict[tuple[str, str], list[dict[str, Any]]] = {}
        # Told already: the ranks that came later.
        self._told: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._untold = 0

    def add(self, notice: dict[str, Any]) -> None:
        key = (str(notice["level"]), str(notice["text"]))
        int(notice["rank"]), str(notice["host"])  # what isn't there is no notice
        for known in (self._told, self._waiting):
            if key in known:
                known[key].append(notice)
                return
        self._new.setdefault(key, []).append(notice)

    def due(self, last: bool = False) -> Iterator[tuple[str, str]]:
        """(level, line) of what is to be told now; at the last look of everything, and who said the same later."""
        ready = {**self._waiting, **self._new} if last else self._waiting
        self._waiting, self._new = ({} if last else self._new), {}
        for (level, text), notices in ready.items():
            if len(self._told) >= NOTICES:
                self._untold += len(notices)
                continue
            self._told[level, text] = []
            yield level, f"{tag(notices)}: {text}"
        if last:
            yield from self._later()

    def _later(self) -> Iterator[tuple[str, str]]:
        for (level, text), notices in self._told.items():
            if notices:
                yield level, f"also {tag(notices)}: {text}"
        if self._untold:
            yield "warning", f"{self._untold:,} more warnings and errors stand in the logs of the ranks"


def tag(notices: Sequence[dict[str, Any]]) -> str:
    """`rank 3 on host-b`, or `ranks 0-3, 5`, or the first few of many with their count."""
    if len(notices) == 1:
        return f"rank {notices[0]['rank']} on {notices[0]['host']}"
    ranks = _ranges(sorted({int(notice["rank"]) for notice in notices}))
    named = ", ".join(ranks[:RANKS_NAMED])
    return f"ranks {named}" if len(ranks) <= RANKS_NAMED else f"ranks {named}, … ({len(notices):,} ranks)"


def _ranges(ranks: Iterable[int]) -> list[str]:
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return [str(first) if first == last else f"{first}-{last}" for first, last in runs]


def line(event: dict[str, Any]) -> str:
    """`epoch 2/10 · step 400/1200 · loss 0.183 · val_mae 12.1 · 41,200 rows/s · ETA 3 m 20 s`.

    The steps are those of the epoch; the time is that to the end of the whole training, left out where nothing tells.
    """
    total = f"/{event['epochs']}" if event.get("epochs") and event["epochs"] > 0 else ""
    figures = [f"{name} {value:.4g}" for name, value in event["metrics"].items() if value is not None]
    parts = [f"epoch {event['epoch']}{total}", f"step {event['step']}/{event['steps']}", *figures]
    left = event.get("seconds_left")
    return " · ".join([*parts, f"{event['rows_per_second']:,} rows/s", *([f"ETA {duration(left)}"] if left else [])])


def duration(seconds: float) -> str:
    """`45 s`, `3 m 20 s`, `1 h 5 m`."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes_rest = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_rest} m"
    return f"{minutes} m {rest} s" if minutes else f"{rest} s"

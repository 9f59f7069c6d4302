"""A rank's way to storage while it trains: one thread of its own, bounded memory, and no way to stall or fail the training."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.progress.rank_log import RankLog
from airflow_provider_sparkddp.spec import paths

TICK_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 30.0
# How long a training that has ended waits for a storage that doesn't answer.
END_SECONDS = 5.0
MESSAGES = 200
NOTICES = 50
NOTICE_CHARACTERS = 1000


class Channel:
    """What one rank tells: progress events, notices (warnings and errors), and its log.

    Whoever tells something only puts it into memory. What storage doesn't take in time is dropped, oldest first, and counted.

    Args:
        logs, progress: URIs of the try's folders.

    Attributes:
        outcome: once it is closed: `lost` messages, whether the `log` is whole on storage, notices left `untold` beyond the
            first 50, and storage's `error`.
    """

    def __init__(self, rank: int, host: str, logs: str, progress: str) -> None:
        self.rank, self.host = rank, host
        self.log = RankLog()
        self._log_uri, self._progress = paths.rank_log(logs, rank), progress
        self._lock = threading.RLock()
        self._messages: deque[tuple[str, str]] = deque()
        self._noticed: set[str] = set()
        self._events = self._dropped = self._untold = self._written = 0
        self._error: str | None = None
        self._closing, self._given_up = threading.Event(), False
        self.outcome: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run, name="sparkddp-channel", daemon=True)
        self._thread.start()

    def event(self, body: dict[str, Any]) -> None:
        """How the training goes, a line in the task's log."""
        with self._lock:
            self._events += 1
            self._put(paths.event_name(self._events), body)

    def notice(self, level: str, text: str) -> None:
        """A warning or error for the task's log, tagged with this rank. The same text counts once.

        Args:
            level: "warning" or "error".
        """
        text = " ".join(text.split())[:NOTICE_CHARACTERS]
        with self._lock:
            if text in self._noticed:
                return
            if len(self._noticed) >= NOTICES:
                self._untold += 1
                return
            self._noticed.add(text)
            name = paths.notice_name(self.rank, len(self._noticed))
            self._put(name, {"rank": self.rank, "host": self.host, "level": level, "text": text})

    def _put(self, name: str, body: dict[str, Any]) -> None:
        self._messages.append((name, json.dumps(body)))
        if len(self._messages) > MESSAGES:
            self._messages.popleft()
            self._dropped += 1

    def mine(self, thread: int | None) -> bool:
        """Whether it is this channel's own thread, whose words about storage would make it write again."""
        return thread == self._thread.ident

    def close(self) -> None:
        """Write what is left; a storage that doesn't answer is waited for no longer than END_SECONDS."""
        if self.outcome:
            return
        self._closing.set()
        self._thread.join(END_SECONDS)
        with self._lock:
            # A thread that still hangs in storage writes nothing more when it comes back.
            self._given_up = True
            self.outcome = {
                "lost": self._dropped + len(self._messages),
                "log": self._written == self.log.version,
                "untold": self._untold,
                "error": self._error or ("storage did not answer" if self._thread.is_alive() else None),
            }

    def _run(self) -> None:
        took = 0.0
        while not self._given_up:
            # A slow storage gets a tenth of the time, however many ranks write to it.
            last = self._closing.wait(min(max(TICK_SECONDS, 9 * took), LONGEST_PAUSE_SECONDS))
            started = time.monotonic()
            for write in (self._write_messages, self._write_log):
                try:
                    write()
                except Exception as error:
                    self._error = self._error or str(error)
            took = time.monotonic() - started
            if last:
                return

    def _write_messages(self) -> None:
        while not self._given_up:
            with self._lock:
                first = self._messages[0] if self._messages else None
            if first is None:
                return
            storage.write_text(paths.join(self._progress, first[0]), first[1])
            with self._lock:
                # Meanwhile it may have been dropped as the oldest.
                if self._messages and self._messages[0] is first:
                    self._messages.popleft()

    def _write_log(self) -> None:
        if self._written != self.log.version and not self._given_up:
            data, version = self.log.text()
            storage.write_bytes(self._log_uri, data)
            self._written = version

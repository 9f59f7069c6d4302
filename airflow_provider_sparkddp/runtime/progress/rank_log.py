"""The text of one rank's log: its beginning and its latest lines, in bounded memory."""

from __future__ import annotations

import threading
from collections import deque
from datetime import UTC, datetime

# The beginning tells how it was set up, the end how it went; an object store takes the file whole each time.
HEAD_BYTES, TAIL_BYTES = 1 << 18, 3 << 18
LINE_CHARACTERS = 8192


class RankLog:
    """Lines with their time (UTC) and where they come from; of more than 1 MiB the middle is left out, and counted.

    Attributes:
        version: grows with each line.
    """

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        # Of one thread again and again: a finaliser may print while its thread is in here.
        self._lock = threading.RLock()
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._head_room, self._tail_room = head_bytes, tail_bytes
        self._begun: dict[str, str] = {}
        self._left_out = 0
        self.version = 0

    def write(self, source: str, text: str) -> None:
        """Text of a stream; a line is complete with its end. Of a line that is drawn anew (`\\r`) the last state is kept."""
        with self._lock:
            *lines, rest = (self._begun.pop(source, "") + text).split("\n")
            for line in lines:
                self._add(source, line)
            rest = rest.rpartition("\r")[2]
            if len(rest) > LINE_CHARACTERS:
                self._add(source, rest)
            elif rest:
                self._begun[source] = rest

    def finish(self, source: str) -> None:
        """The stream has ended: a line without an end is one."""
        with self._lock:
            if source in self._begun:
                self._add(source, self._begun.pop(source))

    def _add(self, source: str, line: str) -> None:
        now = datetime.now(UTC).replace(tzinfo=None).isoformat(" ", "milliseconds")
        line = line.rstrip("\r").rpartition("\r")[2]
        cut = f"{line[:LINE_CHARACTERS]} … ({len(line):,} characters)" if len(line) > LINE_CHARACTERS else line
        data = f"{now} {source:7} {cut}\n".encode(errors="replace")
        self.version += 1
        if not self._tail and len(data) <= self._head_room:
            self._head.append(data)
            self._head_room -= len(data)
            return
        self._tail.append(data)
        self._tail_room -= len(data)
        while self._tail_room < 0:
            self._tail_room += len(self._tail.popleft())
            self._left_out += 1

    def text(self) -> tuple[bytes, int]:
        """The file's content, and the version that it is of."""
        with self._lock:
            gap = [f"… {self._left_out:,} lines left out …\n".encode()] if self._left_out else []
            return b"".join([*self._head, *gap, *self._tail]), self.version

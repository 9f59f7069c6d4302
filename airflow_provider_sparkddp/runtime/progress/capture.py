"""While a rank trains, all that its Python code says goes to its log: prints, logging, warnings, the traceback at the end."""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from airflow_provider_sparkddp.runtime.progress.channel import Channel
from airflow_provider_sparkddp.runtime.progress.rank_log import RankLog

# What changes in some later version of a package is no matter of this training: it stands in the rank's log alone.
LATER = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)


class _Stream:
    """Stands for sys.stdout or sys.stderr. A logging handler may keep it for ever: once ended, it is the stream of that time."""

    def __init__(self, log: RankLog, name: str) -> None:
        self._log, self._name = log, name
        self._original: TextIO = getattr(sys, name)
        # A forked process has its own copy of the log, which nobody writes to storage.
        self._process: int | None = os.getpid()

    def write(self, text: str) -> int:
        if self._process != os.getpid():
            return self._other().write(text)
        self._log.write(self._name, text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if self._process != os.getpid():
            self._other().flush()

    def isatty(self) -> bool:
        return False

    def end(self) -> None:
        self._process = None
        self._log.finish(self._name)
        setattr(sys, self._name, self._original)

    def _other(self) -> TextIO:
        now: Any = getattr(sys, self._name)
        return self._original if now is self else now

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _Handler(logging.Handler):
    """Records of INFO and above go to the log, of WARNING and above to the task's log too."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(logging.INFO)
        self._channel = channel
        self._process = os.getpid()
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if self._channel.mine(record.thread) or self._process != os.getpid():
            return
        text = self.format(record)
        self._channel.log.write(record.levelname, text + "\n")
        if record.levelno >= logging.WARNING:
            raised = f" ({record.exc_info[1]!r})" if record.exc_info else ""
            level = "error" if record.levelno >= logging.ERROR else "warning"
            self._channel.notice(level, f"{record.name}: {record.getMessage()}{raised}")


@contextmanager
def telling(rank: int, host: str, settings: Mapping[str, Any]) -> Iterator[Channel]:
    """The rank's channel to settings["logs"] and settings["progress"], and in it all that the rank says; closed at the end."""
    channel = Channel(rank, host, settings["logs"], settings["progress"])
    try:
        with captured(channel):
            yield channel
    finally:
        channel.close()


@contextmanager
def captured(channel: Channel) -> Iterator[None]:
    """What is replaced is put back; native code's output goes where it went before, to the executor's own log."""
    streams = [_Stream(channel.log, name) for name in ("stdout", "stderr")]
    show, previous = _show(channel, warnings.showwarning), warnings.showwarning
    with _handled(_Handler(channel)):
        for stream in streams:
            setattr(sys, stream._name, stream)
        warnings.showwarning = show
        try:
            yield
        except BaseException:
            channel.log.write("error", traceback.format_exc())
            raise
        finally:
            warnings.showwarning = previous
            for stream in streams:
                stream.end()


def _show(channel: Channel, previous: Any) -> Any:
    process = os.getpid()

    def show(
        message: Any, category: type[Warning], filename: str, lineno: int, file: Any = None, line: str | None = None
    ) -> None:
        if file is not None or process != os.getpid():
            previous(message, category, filename, lineno, file, line)
            return
        channel.log.write("warning", warnings.formatwarning(message, category, filename, lineno, line))
        if not issubclass(category, LATER):
            channel.notice("warning", f"{category.__name__}: {message}")

    return show


@contextmanager
def _handled(handler: logging.Handler) -> Iterator[None]:
    """The handler takes the place of those that write to the console; INFO of the user's own code is let through."""
    root = logging.getLogger()
    known = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    loggers = [root, *(each for each in known if not each.propagate)]
    before, level = [list(each.handlers) for each in loggers], root.level
    for logger, handlers in zip(loggers, before, strict=True):
        logger.handlers = [each for each in handlers if type(each) is not logging.StreamHandler] + [handler]
    root.setLevel(min(level, logging.INFO))
    try:
        yield
    finally:
        for logger, handlers in zip(loggers, before, strict=True):
            logger.handlers = handlers
        root.setLevel(level)

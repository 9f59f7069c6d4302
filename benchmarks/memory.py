"""Resident memory of a process, as Linux counts it. Elsewhere nothing is known, and the figures are left out."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

MB = 1e6


def resident(pid: int | None = None) -> int | None:
    """Bytes that the process (None: this one) holds in memory now."""
    return _status(pid, "VmRSS")


def peak(pid: int | None = None) -> int | None:
    """The most bytes that it held since `reset_peak`, or since it started where that isn't allowed."""
    return _status(pid, "VmHWM")


def reset_peak(pid: int | None = None) -> None:
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid or os.getpid()}/clear_refs").write_text("5")


def _status(pid: int | None, name: str) -> int | None:
    try:
        text = Path(f"/proc/{pid or os.getpid()}/status").read_text()
    except OSError:
        return None
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None

"""A range of TCP ports, as a firewall between executors leaves it open."""

from __future__ import annotations

import re
from typing import Any

from airflow_provider_sparkddp.spec.errors import SparkDDPError

# Of one host: the driver's two, one of each executor, and the ranks'.
FEWEST = 8


def ports(value: Any, name: str = "port_range") -> tuple[int, int]:
    """First and last port of "34000-34100". Raises SparkDDPError SDDP-101."""
    found = re.fullmatch(r"\s*(\d{1,5})\s*-\s*(\d{1,5})\s*", str(value))
    first, last = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1024 <= first <= last <= 65535:
        raise SparkDDPError(
            "SDDP-101", f"{name}={value!r} is no range of ports.", "Write '34000-34100', within 1024 and 65535."
        )
    if last - first + 1 < FEWEST:
        raise SparkDDPError(
            "SDDP-101",
            f"{name}={value!r} holds {last - first + 1} ports.",
            f"Open at least {FEWEST}: Spark's driver and executors and the ranks take one and more each.",
        )
    return first, last

"""Versions of the packages that a training needs, as each task finds them; read from their metadata, nothing is imported."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from airflow_provider_sparkddp.spec.errors import SparkDDPError

NEEDED = ("torch", "pytorch-lightning", "numpy", "pyarrow", "safetensors")
# Ranks that differ in these may compute different things, or not understand one another.
SAME = ("python", "torch", "pytorch-lightning", "lightning")
# In words of Spark's, where a Python worker could not even begin with its task.
_UNFIT = re.compile(r"\[PYTHON_VERSION_MISMATCH\][^\n]*|ModuleNotFoundError: [^\n]*")
_REMEDY = (
    "Install the same packages on all executors (airflow-provider-sparkddp[cluster]), or send a packed environment with "
    "archives."
)


def versions() -> dict[str, str]:
    """Package -> version, of those that are here. Python's without its last number."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in dict.fromkeys((*SAME[1:], *NEEDED)):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def require_same(hosts: Sequence[str], found: Sequence[Mapping[str, str]]) -> None:
    """Every task has what it needs, and the same of it.

    Args:
        hosts, found: host and versions of each task, in the order of the tasks.

    Raises:
        SparkDDPError: SDDP-311 with a table of what differs.
    """
    missing = [name for name in NEEDED if any(name not in each for each in found)]
    unlike = [name for name in SAME if len({each.get(name) for each in found}) > 1]
    names = list(dict.fromkeys([*missing, *unlike]))
    if not names:
        return
    lines = {
        f"{host}: " + ", ".join(f"{name} {each.get(name, 'missing')}" for name in names)
        for host, each in zip(hosts, found, strict=True)
    }
    told = f"lack {', '.join(missing)}" if missing else f"differ in {', '.join(unlike)}"
    raise SparkDDPError(
        "SDDP-311",
        f"the executors {told} ({'; '.join(sorted(lines))})",
        _REMEDY,
    )


def unfit_worker(error: Exception) -> SparkDDPError | None:
    """A Python worker of another Python than the driver's, or without a package that each task needs; None of any other error."""
    found = _UNFIT.search(str(error))
    return SparkDDPError("SDDP-311", f"a Python worker could not begin: {found.group()}", _REMEDY) if found else None

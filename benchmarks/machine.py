"""What a reader must know of the machine, and nothing that names it."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def hardware() -> str:
    """The part of a record's name that says where it was taken."""
    return f"{cores()}-cores"


def facts(java: str | None) -> dict[str, str]:
    """Name -> value, for the record's head. `java`: the version that Spark's driver runs on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = {name: _version(name) for name in ("pyspark", "pyarrow", "numpy")}
    return {
        "cores": str(cores()),
        "memory": f"{memory:.0f} GiB",
        "Java": java or "not used",
        "Python": platform.python_version(),
        "Spark": packages.pop("pyspark"),
        **packages,
        "commit": _commit(),
    }


def load() -> float:
    """Processes that wanted to run, averaged over the last minute: above 1 the machine isn't quiet."""
    return os.getloadavg()[0]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """The commit that is measured, and whether the package's code differs from it."""
    commit = _git("rev-parse", "--short=10", "HEAD")
    if not commit:
        return "unknown"
    return f"{commit} with changes" if _git("status", "--porcelain", "airflow_provider_sparkddp") else commit


def _git(*arguments: str) -> str:
    try:
        ran = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return ran.stdout.strip()

"""A test that leaks fails: it would change what the tests after it see.

Taken before a test and compared after it, when its own fixtures are gone. What a fixture of a wider scope holds (a Spark session of
a module, a cluster of the session) is there before and after, and so is no leak; it is asked for once more when all tests are done.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
KINDS = ("environment", "directory", "threads", "process group", "spark", "files")
# Set by a library for its whole process when it is first imported or started: no test could put them back for it.
SET_BY_LIBRARIES = {
    "PYTEST_CURRENT_TEST": "pytest, while a test runs",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "pytorch_lightning, at import",
    "TORCHINDUCTOR_CACHE_DIR": "torch, when Lightning imports its compiler",
    "SPARK_AUTH_SOCKET_TIMEOUT": "pyspark, at the first session",
    "SPARK_BUFFER_SIZE": "pyspark, at the first session",
}
# Tools keep these in the repository root; all are ignored by git.
CACHES = {
    ".pytest_cache",
    ".hypothesis",
    ".mypy_cache",
    ".ruff_cache",
    ".import_linter_cache",
    "__pycache__",
}
# A pool that was shut down without waiting needs a moment.
THREADS_END_WITHIN = 1.0


@dataclass(frozen=True)
class State:
    """What a test must leave as it found it."""

    environment: dict[str, str]
    directory: Path
    files: frozenset[Path]
    threads: frozenset[threading.Thread]
    group: bool
    spark: Any

    @classmethod
    def now(cls) -> State:
        directory = Path.cwd()
        return cls(_environment(), directory, _files(directory), _threads(), _process_group(), _spark())

    def leaks(self) -> dict[str, str]:
        """Kind -> what was left behind since this state was taken."""
        found = {
            "environment": ", ".join(_changed(self.environment, _environment())),
            "directory": "" if Path.cwd() == self.directory else f"{self.directory} became {Path.cwd()}",
            "threads": ", ".join(sorted(thread.name for thread in self._left_threads())),
            "process group": "torch.distributed is initialized" if _process_group() and not self.group else "",
            "spark": "a Spark session is active" if _spark() not in (None, self.spark) else "",
            "files": ", ".join(sorted(map(str, _files(self.directory) - self.files))),
        }
        return {kind: text for kind, text in found.items() if text}

    def _left_threads(self) -> list[threading.Thread]:
        deadline = time.monotonic() + THREADS_END_WITHIN
        started = _threads() - self.threads
        for thread in started:
            thread.join(max(0.0, deadline - time.monotonic()))
        return [thread for thread in started if thread.is_alive()]

    def restore(self) -> None:
        """Put back what can be, so that one leak fails one test."""
        for name in _changed(self.environment, _environment()):
            if name in self.environment:
                os.environ[name] = self.environment[name]
            else:
                del os.environ[name]
        os.chdir(self.directory)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in SET_BY_LIBRARIES}


def _changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def _files(directory: Path) -> frozenset[Path]:
    found = {path for folder in {directory, REPOSITORY} for path in folder.iterdir()}
    return frozenset(path for path in found if path.name not in CACHES)


def _threads() -> frozenset[threading.Thread]:
    return frozenset(thread for thread in threading.enumerate() if not thread.daemon)


def _process_group() -> bool:
    # Nothing heavy is imported to look: what isn't loaded can't leak.
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and distributed.is_initialized()


def _spark() -> Any:
    context = sys.modules.get("pyspark.core.context")
    return context.SparkContext._active_spark_context if context is not None else None


def _allowed(node: pytest.Item) -> set[str]:
    """The kinds that the test's `leaks` markers allow, each with its reason."""
    kinds = set()
    for marker in node.iter_markers("leaks"):
        if not marker.kwargs.get("reason") or not marker.args or not set(marker.args) <= set(KINDS):
            pytest.fail(f"write @pytest.mark.leaks(kind, reason=…), with kinds of {', '.join(KINDS)}", pytrace=False)
        kinds |= set(marker.args)
    return kinds


def _require_none(found: dict[str, str]) -> None:
    if found:
        pytest.fail("left behind: " + "; ".join(f"{kind}: {text}" for kind, text in found.items()), pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "leaks(kind, ..., reason): the test may leave this behind, for the reason given")


@pytest.fixture(scope="session", autouse=True)
def charged_kinds() -> Iterator[set[str]]:
    """The kinds that some test was charged with. At the end, the fixtures of wider scopes must have left nothing either.

    Variables and the directory are watched test by test alone.
    """
    before, charged = State.now(), {"environment", "directory"}
    yield charged
    _require_none({kind: text for kind, text in before.leaks().items() if kind not in charged})


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest, charged_kinds: set[str]) -> Iterator[None]:
    allowed = _allowed(request.node)
    before = State.now()
    yield
    found = before.leaks()
    before.restore()
    charged_kinds.update(found)
    _require_none({kind: text for kind, text in found.items() if kind not in allowed})

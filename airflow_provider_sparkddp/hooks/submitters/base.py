"""What every way of running a job has in common."""

from __future__ import annotations

import abc
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.secrets import to_line

# The model's code has no business with Airflow's settings, connections and variables.
_PRIVATE = ("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_", "_AIRFLOW", "__AIRFLOW")


def environment() -> dict[str, str]:
    """This process's environment without what is Airflow's own: for every process that a job runs in."""
    return {key: value for key, value in os.environ.items() if not key.startswith(_PRIVATE)}


class Submitter(abc.ABC):
    """Runs the entry with a job until it ends. What it prints goes to the task's log."""

    @abc.abstractmethod
    def run(self, job_uri: str, parent_pipe: str) -> str | None:
        """Block until the job's process ends; None when it ended well, else how it ended (for a job without a result)."""

    @abc.abstractmethod
    def cancel(self) -> None:
        """End the job's process soon. Called from a signal handler: quick, bounded, harmless when nothing runs."""


class ParentPipe:
    """A named pipe whose writing end this process holds: when it dies, however, the job reads its end.

    An inherited pipe would not reach the driver: Java closes all but the standard three when it starts Python.
    """

    def __init__(self, path: str, handle: int) -> None:
        self.path, self._handle = path, handle

    def put(self, line: bytes) -> None:
        """Leave a line in the pipe for whoever reads it. Never waits: nobody reads yet."""
        if os.write(self._handle, line) < len(line):
            raise SparkDDPError(
                "SDDP-112",
                f"the connection's URL, user and password take {len(line):,} bytes, more than a pipe holds.",
                "Shorten the URL in the connection (tables and queries belong into source).",
            )

    def close(self) -> None:
        """Let go: the job ends itself."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


@contextmanager
def parent_pipe(secrets: Mapping[str, str] | None = None) -> Iterator[ParentPipe]:
    """The pipe for one job, with a line of secrets in it that the job reads first; gone afterwards.

    Raises:
        SparkDDPError: SDDP-112 when the secrets are more than a pipe holds.
    """
    with tempfile.TemporaryDirectory(prefix="sparkddp-parent-") as folder:
        path = str(Path(folder) / "alive")
        os.mkfifo(path, 0o600)
        # Both directions, so that opening doesn't wait for the reader. Python's handles aren't inherited by children.
        pipe = ParentPipe(path, os.open(path, os.O_RDWR | os.O_NONBLOCK))
        try:
            pipe.put(to_line(secrets or {}))
            yield pipe
        finally:
            pipe.close()

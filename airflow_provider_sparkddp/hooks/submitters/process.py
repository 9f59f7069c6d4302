"""A process of its own, with an interpreter of the user's choice: export and validation don't run in Airflow's task process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from airflow_provider_sparkddp.hooks.submitters.base import Submitter
from airflow_provider_sparkddp.spec.errors import SparkDDPError

ENTRY_MODULE = "airflow_provider_sparkddp.runtime.entry.sparkddp_main"
# The model's code has no business with Airflow's settings and connections.
_PRIVATE = ("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_", "_AIRFLOW")


class Process(Submitter):
    """Args:
    python: the interpreter; None is Airflow's own.
    provider_zip: local path of the provider's code, so that the interpreter needn't have it installed.
    log: called with each line that the process prints.
    """

    def __init__(self, python: str | None, provider_zip: str, log: Callable[[str], None]) -> None:
        self._python, self._zip, self._log = python or sys.executable, provider_zip, log
        self._process: subprocess.Popen[str] | None = None

    def run(self, job_uri: str, parent_pipe: str) -> str | None:
        command = [self._python, "-m", ENTRY_MODULE, job_uri, "--parent-pipe", parent_pipe]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(_PRIVATE)}
        environment["PYTHONPATH"] = self._zip
        # `python -m` would put the current folder first: no file that lies there by chance may hide a module.
        environment["PYTHONSAFEPATH"] = "1"
        try:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise SparkDDPError(
                "SDDP-101", f"python={self._python!r} cannot be started ({error}).", "Give the path of an interpreter."
            ) from error
        tail: list[str] = []
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._log(line.rstrip("\n"))
                tail = [*tail[-19:], line.rstrip("\n")]
        status = self._process.wait()
        return None if status == 0 else f"the process ended with status {status}; its last lines: " + " | ".join(tail)

    def cancel(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

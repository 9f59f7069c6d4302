"""A process of its own, with an interpreter of the user's choice: export and validation don't run in Airflow's task process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from airflow_provider_sparkddp.hooks.submitters.base import Submitter, environment
from airflow_provider_sparkddp.spec.errors import SparkDDPError

ENTRY_MODULE = "airflow_provider_sparkddp.runtime.entry.sparkddp_main"
_NEEDED = ("fsspec", "numpy", "pyarrow", "pytorch_lightning", "safetensors", "torch")


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
        # `python -m` would put the current folder first: no file that lies there by chance may hide a module.
        variables = {**environment(), "PYTHONPATH": self._zip, "PYTHONSAFEPATH": "1"}
        self._require_packages(variables)
        self._process = subprocess.Popen(
            command,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        tail: list[str] = []
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._log(line.rstrip("\n"))
                tail = [*tail[-19:], line.rstrip("\n")]
        status = self._process.wait()
        return None if status == 0 else f"the process ended with status {status}; its last lines: " + " | ".join(tail)

    def _require_packages(self, variables: dict[str, str]) -> None:
        """Raises SparkDDPError SDDP-101 when the interpreter lacks what a job needs, or doesn't start."""
        look = f"import importlib.util as u; print(*(n for n in {_NEEDED!r} if u.find_spec(n) is None))"
        try:
            ran = subprocess.run([self._python, "-c", look], env=variables, capture_output=True, text=True, check=False)
        except OSError as error:
            raise self._unusable(f"cannot be started ({error})") from error
        if ran.returncode:
            raise self._unusable(f"ended with status {ran.returncode} at once: {ran.stderr.strip()[-200:]}")
        if ran.stdout.strip():
            raise self._unusable(f"lacks {ran.stdout.strip()}")

    def _unusable(self, why: str) -> SparkDDPError:
        return SparkDDPError(
            "SDDP-101",
            f"python={self._python!r} {why}.",
            "Give python the path of an interpreter into which 'airflow-provider-sparkddp[cluster]' was installed.",
        )

    def cancel(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

"""Runs a planned job: writes job.json, submits, waits, reads result.json; cancels."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.hooks.bundle import CodeZip
from airflow_provider_sparkddp.hooks.progress import ProgressTail
from airflow_provider_sparkddp.hooks.submitters.base import ParentPipe, Submitter, parent_pipe
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.results import JobResult


class SparkDDPHook(BaseHook):
    """One job at a time. `run` blocks; `cancel` may be called meanwhile, from a signal handler."""

    def __init__(self) -> None:
        super().__init__()
        self._submitter: Submitter | None = None
        self._pipe: ParentPipe | None = None
        self._cancelled = False

    def run(
        self,
        job: Job,
        provider: CodeZip,
        make_submitter: Callable[[str], Submitter],
        secrets: Mapping[str, str] | None = None,
    ) -> JobResult:
        """Run the job to its end.

        Args:
            make_submitter: from the local path of the provider's zip to the way of running.
            secrets: for the job alone; they travel through the parent pipe and are written nowhere.

        Raises:
            SparkDDPError: the job's own failure; SDDP-304 without a result; SDDP-305 for another try's; SDDP-309 when cancelled.
        """
        uri = paths.join(job.directory, paths.JOB)
        storage.write_text(uri, job.to_text())
        self.log.info("Job: %s", uri)
        started = time.time()
        with tempfile.TemporaryDirectory(prefix="sparkddp-code-") as folder, parent_pipe(secrets) as pipe:
            local = Path(folder) / provider.name
            local.write_bytes(provider.data)
            self._pipe, self._submitter = pipe, make_submitter(str(local))
            if self._cancelled:
                raise _cancelled(job)
            with ProgressTail(paths.join(job.directory, paths.PROGRESS), self._tell):
                ended = self._submitter.run(uri, pipe.path)
        result = self._result(job, ended)
        self._log_times(result, started)
        return result

    def _tell(self, level: str, line: str) -> None:
        getattr(self.log, level)("%s", line)

    def _result(self, job: Job, ended: str | None) -> JobResult:
        where = paths.join(job.directory, paths.RESULT)
        if self._cancelled:
            raise _cancelled(job)
        try:
            result = JobResult.from_text(storage.read_text(where), where, job.nonce)
        except FileNotFoundError:
            how = ended or "its process ended well, so the driver and this Airflow worker don't share the run directory"
            raise SparkDDPError(
                "SDDP-304",
                f"{job.label} left no result at {where}: {how}",
                "Read the log above; a driver killed for memory needs more driver_memory.",
            ) from None
        for line in result.summary:
            self.log.info("%s", line)
        if result.failure:
            # Here and not in the driver's output, which loses its indentation on the way into the log.
            for line in str(result.failure.details.get("traceback", "")).splitlines():
                self.log.error("%s", line)
            raise result.failure.error()
        if ended:
            # The driver had published before Spark's own end went wrong; the result is whole, and its nonce is ours.
            self.log.warning("The job's result is whole, but its process did not end well: %s", ended)
        return result

    def _log_times(self, result: JobResult, started: float) -> None:
        first: Any = result.values.get("first_step_at")
        if first:
            self.log.info("First training step %.1f s after submit", first - started)
        took = time.time() - started
        phases = {"start and stop": took - sum(result.seconds.values()), **result.seconds}
        told = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in phases.items())
        self.log.info("Done in %.1f s (%s)", took, told)

    def cancel(self) -> None:
        """End the job soon: its process is told, and the pipe that it watches closes."""
        self._cancelled = True
        if self._submitter:
            self._submitter.cancel()
        if self._pipe:
            self._pipe.close()


def _cancelled(job: Job) -> SparkDDPError:
    return SparkDDPError(
        "SDDP-309", f"{job.label} was cancelled.", "Nothing was published; clear the task to run it again."
    )

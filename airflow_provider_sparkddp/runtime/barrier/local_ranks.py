"""Several ranks in one Spark task: each is a process of its own, which ends with the task in whatever way that ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import IO, Any

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.spec.errors import SparkDDPError

POLL_SECONDS = 0.05
MODULE = "airflow_provider_sparkddp.runtime.barrier.local_rank"


@dataclass
class LocalRank:
    """A process that waits on its standard input for what to do, and then does it as one rank.

    Attributes:
        results: a file without a name for its report. A pipe would not end while a process that the rank left behind holds it.
    """

    process: subprocess.Popen[bytes]
    results: IO[bytes]

    def report(self) -> dict[str, Any]:
        """What it left before it ended with status 0."""
        self.results.seek(0)
        found: dict[str, Any] = json.loads(self.results.read())
        return found


@contextmanager
def local_ranks(function: str, count: int) -> Iterator[list[LocalRank]]:
    """That many processes, which import the function's module meanwhile; all are gone afterwards.

    Args:
        function: import path of `fn(rank_info, store, settings) -> report`.
    """
    started: list[LocalRank] = []
    try:
        for _ in range(count):
            started.append(_start(function))
        yield started
    finally:
        for each in started:
            each.process.kill()
            each.process.wait()
            if each.process.stdin:
                each.process.stdin.close()
            each.results.close()


def _start(function: str) -> LocalRank:
    results = tempfile.TemporaryFile()  # noqa: SIM115  # closed by local_ranks
    # What Spark put on this process's path, such as py_files, is not in its environment.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", MODULE, function, str(results.fileno())]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, pass_fds=(results.fileno(),))
    return LocalRank(process, results)


def run_all(ranks: Sequence[LocalRank], infos: Sequence[RankInfo], rest: dict[str, Any]) -> list[dict[str, Any]]:
    """Tell each rank who it is, and wait for all; their reports in the order of the ranks.

    Args:
        rest: what is told to each rank besides: settings and the folder for failures.

    Raises:
        SparkDDPError: SDDP-405 naming the first rank that ended without a report, and how.
    """
    for each, info in zip(ranks, infos, strict=True):
        assert each.process.stdin is not None
        # A process that has ended already is found below.
        try:
            each.process.stdin.write(json.dumps({**rest, "info": asdict(info)}).encode() + b"\n")
            each.process.stdin.flush()
        except BrokenPipeError:
            continue
    while True:
        time.sleep(POLL_SECONDS)
        statuses = [each.process.poll() for each in ranks]
        failed = [(status, info) for status, info in zip(statuses, infos, strict=True) if status]
        if failed:
            # One that was killed, if any: what its peers raise then is only that they lost it.
            status, info = min(failed, key=lambda each: each[0])
            raise _lost(info, status)
        if None not in statuses:
            return [each.report() for each in ranks]


def _lost(info: RankInfo, status: int) -> SparkDDPError:
    how = f"exit status {status}"
    if status < 0:
        how = f"signal {-status} ({signal.Signals(-status).name})"
    return SparkDDPError(
        "SDDP-405",
        f"rank {info.rank} on {info.host} ended with {how}",
        "A process that is killed usually lacked memory: raise executor_memory or lower batch_size.",
        {"rank": info.rank, "host": info.host, "exit_status": status},
    )

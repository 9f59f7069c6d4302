"""Several ranks in one Spark task: each is a process of its own, which ends with the task in whatever way that ends."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.spec.errors import SparkDDPError

MODULE = "airflow_provider_sparkddp.runtime.barrier.local_rank"


@dataclass
class LocalRank:
    """A process that waits on its standard input for what to do, and then does it as one rank.

    Attributes:
        report: its result, once it is there: one line of JSON.
    """

    process: subprocess.Popen[bytes]
    results: Any
    report: bytes = b""

    def wait(self) -> int:
        """Until it ends; its exit status. A process that dies closes the pipe of its results."""
        self.report = self.results.read()
        return self.process.wait()


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
    read, write = os.pipe()
    # What Spark put on this process's path, such as py_files, is not in its environment.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", MODULE, function, str(write)]
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, pass_fds=(write,))
    finally:
        os.close(write)
    return LocalRank(process, os.fdopen(read, "rb"))


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
    ended: queue.Queue[tuple[RankInfo, int]] = queue.Queue()
    for each, info in zip(ranks, infos, strict=True):
        threading.Thread(target=lambda e=each, i=info: ended.put((i, e.wait())), daemon=True).start()
    for _ in ranks:
        info, status = ended.get()
        if status != 0:
            raise _lost(info, status)
    return [json.loads(each.report) for each in ranks]


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

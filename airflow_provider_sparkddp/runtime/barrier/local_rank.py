"""One of several ranks of a Spark task, as a process: `python -m … FUNCTION RESULTS`, the rest on standard input.

FUNCTION is an import path, RESULTS the number of the open file for the report. Standard input stays open as long as the task lives.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.failures import leave_failure
from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.barrier.rendezvous import all_connected, connect
from airflow_provider_sparkddp.runtime.imports import import_object, preload


def main() -> int:
    """0 with a report, 1 with a failure left where the driver finds it."""
    function, results = sys.argv[1], int(sys.argv[2])
    preload(function)
    line = _first_line()
    threading.Thread(target=_end_with_the_task, daemon=True).start()
    if not line:
        return 1  # the task ended before it had anything to do
    told = json.loads(line)
    info = RankInfo(**{**told["info"], "gpus": tuple(told["info"]["gpus"])})
    try:
        report = _run(function, info, told["settings"])
    except BaseException as error:
        leave_failure(told["failures"], info.rank, error)
        traceback.print_exc()
        return 1
    with os.fdopen(results, "wb") as file:
        file.write(json.dumps(report).encode())
    return 0


def _run(function: str, info: RankInfo, settings: dict[str, Any]) -> Any:
    store = connect(info)
    all_connected(info, store)
    return import_object(function, "rank function")(info, store, settings)


def _first_line() -> bytes:
    """Without Python's buffer, whose lock the thread below would hold when the interpreter ends."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 1 << 16)
        if not part:
            return b""
        line += part
    return line


def _end_with_the_task() -> None:
    while os.read(0, 1):
        continue
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # As Spark's Python workers end: without waiting for threads that a library left.
    os._exit(status)

"""A rank's error on its way to the driver, and which of several was the first."""

from __future__ import annotations

import re
import socket
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.barrier.versions import unfit_worker
from airflow_provider_sparkddp.spec import paths, wire
from airflow_provider_sparkddp.spec.errors import Failure, SparkDDPError

# How torch tells of a peer's death.
_SECONDARY = re.compile(r"third_party/gloo|^Gloo |Connection closed by peer|Connection reset by peer|NCCL|ProcessGroup")


def leave_failure(folder: str, rank: int, error: BaseException, *, of_task: bool = False) -> None:
    """Write a rank's error where the driver finds it: a stage's message holds only one rank's, and cut.

    Args:
        of_task: it is the error of a task with several ranks, which may have left their own: that of a rank which ended with an
            exit status only follows from it.
    """
    text = "".join(traceback.format_exception(error))
    known = error if isinstance(error, SparkDDPError) else None
    body = {
        "rank": known.details.get("rank", rank) if known else rank,
        "host": socket.gethostname(),
        "time": time.time(),
        "error": f"{type(error).__name__}: {error}",
        "traceback": text[-20_000:],
        "failure": Failure.of(known).to_json() if known else None,
        "secondary": lost_a_peer(error) if known is None else known.details.get("exit_status", 0) > 0,
    }
    try:
        storage.write_text(
            paths.join(folder, f"{'task-of-rank' if of_task else 'rank'}-{rank}.json"), wire.pack("failure", body)
        )
    except SparkDDPError:
        return  # the storage is what failed; Spark's own message must do


def lost_a_peer(error: BaseException) -> bool:
    """Whether the error is torch's own word that another rank went away. A user's "connection refused" isn't."""
    kind = type(error)
    if kind.__name__ in ("DistBackendError", "DistNetworkError", "DistStoreError"):
        return kind.__module__.startswith("torch")
    return kind is RuntimeError and bool(_SECONDARY.search(str(error)))


def cause(error: Exception, folder: str) -> SparkDDPError:
    """The first rank's own error; that of peers which only noticed its death is none."""
    found = []
    for name in storage.names(folder):
        if name.endswith(".json"):
            where = paths.join(folder, name)
            # One that can't be read must not hide those that can.
            with suppress(SparkDDPError, FileNotFoundError):
                found.append(wire.unpack("failure", storage.read_text(where), where))
    own = [body for body in found if not body["secondary"]]
    if not own:
        return unfit_worker(error) or _lost(error, found)
    first = min(own, key=lambda body: float(body["time"]))
    origin = _origin(first)
    if first["failure"]:
        known = Failure(**first["failure"])
        who = "" if known.message.startswith(f"rank {first['rank']} ") else f"rank {first['rank']}: "
        return SparkDDPError(known.code, f"{who}{known.message}", known.remedy, known.details | origin)
    return SparkDDPError(
        "SDDP-404",
        f"rank {first['rank']} on {first['host']} raised {first['error']}",
        "Its traceback stands above. Mend the model or the data, then clear the task.",
        origin,
    )


def _lost(error: Exception, noticed: Sequence[Mapping[str, Any]]) -> SparkDDPError:
    """A rank that left no word; the ranks that noticed say how it looked from there, which may also be the network."""
    told, details = f"Spark says: {_first_lines(error)}", {}
    if noticed:
        first = min(noticed, key=lambda body: float(body["time"]))
        ranks = ", ".join(f"rank {body['rank']} on {body['host']}" for body in noticed)
        told, details = f"{ranks} lost the connection: {first['error'][:300]}", _origin(first)
    return SparkDDPError(
        "SDDP-405",
        f"a rank ended without a word, as a killed process does, or can't be reached; {told}",
        "Look for memory limits and lost executors in Spark's UI, and for firewalls between the executors; raise "
        "executor_memory or lower batch_size.",
        details,
    )


def _origin(failure: Mapping[str, Any]) -> dict[str, Any]:
    return {key: failure[key] for key in ("rank", "host", "traceback")}


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).split())[:600]

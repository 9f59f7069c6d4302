"""Starts one barrier task a rank and brings their reports, or the first rank's own error, back to the driver."""

from __future__ import annotations

import json
import re
import socket
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.barrier.rendezvous import Cores, meet
from airflow_provider_sparkddp.runtime.imports import import_object
from airflow_provider_sparkddp.spec import paths, wire
from airflow_provider_sparkddp.spec.errors import Failure, SparkDDPError

# How torch tells of a peer's death.
_SECONDARY = re.compile(r"third_party/gloo|^Gloo |Connection closed by peer|Connection reset by peer|NCCL|ProcessGroup")


@dataclass(frozen=True)
class Launch:
    """What every rank is given.

    Attributes:
        function: import path of `fn(rank_info, store, settings) -> report`, a small plain dict. A path, so that the driver
            doesn't import torch for it.
        settings: plain JSON for the function.
        failures: URI of the folder where a failing rank leaves its error.
        ports: first and last port among which rank 0's store takes one; None: any.
    """

    function: str
    settings: dict[str, Any]
    failures: str
    cores: Cores
    ports: tuple[int, int] | None = None


def launch(spark: Any, work: Launch, world_size: int) -> list[dict[str, Any]]:
    """Run the function on every rank; their reports in the order of the ranks.

    Raises:
        SparkDDPError: the failing rank's own error (SDDP-404 or its own code), with rank, host and traceback in the details;
            SDDP-405 when a rank was lost without a word.
    """
    frame = spark.range(0, world_size, 1, world_size)
    # Spark would print each rank's error several times over, in Java's frames; the ranks leave theirs whole.
    spark.sparkContext.setLogLevel("FATAL")
    try:
        rows = frame.mapInArrow(
            lambda batches: _rank_task(batches, work), "rank long, report string", barrier=True
        ).collect()
    except Exception as error:
        raise _cause(error, work.failures) from error
    finally:
        spark.sparkContext.setLogLevel(spark.sparkContext.getConf().get("spark.log.level", "WARN"))
    return [json.loads(row["report"]) for row in sorted(rows, key=lambda row: int(row["rank"]))]


def _rank_task(batches: Iterator[Any], work: Launch) -> Iterator[Any]:
    """The body of one barrier task, in Spark's own Python worker."""
    import pyarrow
    from pyspark import BarrierTaskContext

    for _ in batches:
        pass
    context = BarrierTaskContext.get()
    rank = context.partitionId()
    try:
        info, store = meet(context, work.cores, work.ports)
        report = import_object(work.function, "rank function")(info, store, work.settings)
    except BaseException as error:
        leave_failure(work.failures, rank, error)
        raise
    yield pyarrow.RecordBatch.from_pydict(
        {"rank": pyarrow.array([rank], pyarrow.int64()), "report": [json.dumps(report)]}
    )


def leave_failure(folder: str, rank: int, error: BaseException) -> None:
    """Write a rank's error where the driver finds it: a stage's message holds only one rank's, and cut."""
    text = "".join(traceback.format_exception(error))
    known = error if isinstance(error, SparkDDPError) else None
    body = {
        "rank": rank,
        "host": socket.gethostname(),
        "time": time.time(),
        "error": f"{type(error).__name__}: {error}",
        "traceback": text[-20_000:],
        "failure": Failure.of(known).to_json() if known else None,
        "secondary": known is None and lost_a_peer(error),
    }
    try:
        storage.write_text(paths.join(folder, f"rank-{rank}.json"), wire.pack("failure", body))
    except SparkDDPError:
        return  # the storage is what failed; Spark's own message must do


def lost_a_peer(error: BaseException) -> bool:
    """Whether the error is torch's own word that another rank went away. A user's "connection refused" isn't."""
    kind = type(error)
    if kind.__name__ in ("DistBackendError", "DistNetworkError", "DistStoreError"):
        return kind.__module__.startswith("torch")
    return kind is RuntimeError and bool(_SECONDARY.search(str(error)))


def _cause(error: Exception, folder: str) -> SparkDDPError:
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
        return _lost(error, found)
    first = min(own, key=lambda body: float(body["time"]))
    origin = _origin(first)
    if first["failure"]:
        known = Failure(**first["failure"])
        return SparkDDPError(known.code, f"rank {first['rank']}: {known.message}", known.remedy, known.details | origin)
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

"""Starts the ranks as barrier tasks and brings their reports, or the first rank's own error, back to the driver."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.failures import cause, leave_failure
from airflow_provider_sparkddp.runtime.barrier.local_ranks import local_ranks, run_all
from airflow_provider_sparkddp.runtime.barrier.rendezvous import Cores, enter, exchange, ranks_of, serve
from airflow_provider_sparkddp.runtime.imports import import_object, preload


@dataclass(frozen=True)
class Launch:
    """What every rank is given.

    Attributes:
        function: import path of `fn(rank_info, store, settings) -> report`, a small plain dict. A path, so that the driver
            doesn't import torch for it.
        settings: plain JSON for the function.
        failures: URI of the folder where a failing rank leaves its error.
        ports: first and last port among which the ranks' store takes one; None: any.
        ranks_per_task: ranks of each Spark task. One runs in Spark's own Python worker; several are processes beside it.
    """

    function: str
    settings: dict[str, Any]
    failures: str
    cores: Cores
    ports: tuple[int, int] | None = None
    ranks_per_task: int = 1


def launch(spark: Any, work: Launch, world_size: int) -> list[dict[str, Any]]:
    """Run the function on every rank; their reports in the order of the ranks.

    Raises:
        SparkDDPError: the failing rank's own error (SDDP-404 or its own code), with rank, host and traceback in the details;
            SDDP-405 when a rank was lost without a word.
    """
    tasks, left = divmod(world_size, work.ranks_per_task)
    if left:
        raise ValueError(f"{world_size} ranks are not whole tasks of {work.ranks_per_task}")
    frame = spark.range(0, tasks, 1, tasks)
    # Spark would print each rank's error several times over, in Java's frames; the ranks leave theirs whole.
    spark.sparkContext.setLogLevel("FATAL")
    try:
        rows = frame.mapInArrow(
            lambda batches: _task(batches, work), "rank long, report string", barrier=True
        ).collect()
    except Exception as error:
        raise cause(error, work.failures) from error
    finally:
        spark.sparkContext.setLogLevel(spark.sparkContext.getConf().get("spark.log.level", "WARN"))
    return [json.loads(row["report"]) for row in sorted(rows, key=lambda row: int(row["rank"]))]


def _task(batches: Iterator[Any], work: Launch) -> Iterator[Any]:
    """The body of one barrier task, in Spark's own Python worker."""
    import pyarrow
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    first = context.partitionId() * work.ranks_per_task
    several = work.ranks_per_task > 1
    try:
        reports = _several_ranks(context, work) if several else [_only_rank(context, work)]
    except BaseException as error:
        leave_failure(work.failures, first, error, of_task=several)
        raise
    ranks = pyarrow.array(range(first, first + len(reports)), pyarrow.int64())
    yield pyarrow.RecordBatch.from_pydict({"rank": ranks, "report": [json.dumps(each) for each in reports]})
    # Spark gives a Python worker to another task only when it has read all of its input; the others end, and nothing fails.
    if not _holds_cuda():
        for _ in batches:
            pass


def _holds_cuda() -> bool:
    """Whether this process has used CUDA: only its end gives all of a GPU's memory back."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())


def _only_rank(context: Any, work: Launch) -> dict[str, Any]:
    # Importing torch takes longer than the exchange, which mostly waits.
    loading = threading.Thread(target=preload, args=[work.function], daemon=True)
    loading.start()
    met = exchange(context, work.ports)
    # Of two threads that import the same packages at once, each may see half of one: Python breaks their deadlock so.
    loading.join()
    info, store = enter(met, work.cores)
    report: dict[str, Any] = import_object(work.function, "rank function")(info, store, work.settings)
    return report


def _several_ranks(context: Any, work: Launch) -> list[dict[str, Any]]:
    with local_ranks(work.function, work.ranks_per_task) as ranks:
        met = exchange(context, work.ports)
        infos = ranks_of(met, work.cores, work.ranks_per_task)
        # Held until the ranks have ended.
        store = serve(met.listener, infos[0]) if met.listener else None
        reports = run_all(ranks, infos, {"settings": work.settings, "failures": work.failures})
        del store
    return reports

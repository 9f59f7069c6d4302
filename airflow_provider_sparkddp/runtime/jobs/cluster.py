"""The Spark that a job runs on: its session, its free slots, and whether it shares the run directory."""

from __future__ import annotations

import logging
import os
import platform
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.barrier.rendezvous import Cores
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job

POLL_SECONDS = 0.25
SPARK_VERSIONS = ("4.1.", "4.2.")
# Near: an executor registers within seconds or never. Elsewhere a resource manager may have to start machines.
NEAR_TIMEOUT, FAR_TIMEOUT = 20.0, 300.0


def session(label: str, code: Sequence[str], master: str | None) -> Any:
    """The Spark session, with the code on the path of every executor."""
    from pyspark.sql import SparkSession

    # Of pandas this uses nothing that changed in version 3.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    # Each refused query would be logged with a hundred lines of Java; our own error says what Spark said.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    _require_one_pyspark()
    if master and master.startswith("local"):
        # Only spark-submit reads spark.pyspark.python; the ranks of a replay run with this very interpreter.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(label)
    spark = (builder.master(master) if master else builder).getOrCreate()
    _require_version(str(spark.version))
    # One meaning of a timestamp: an instant, in UTC, whatever zone the hosts are in.
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    submitted = spark.sparkContext.getConf().get("spark.submit.pyFiles", "") or ""
    for path in code:
        if path.rsplit("/", 1)[-1] not in submitted:
            spark.sparkContext.addPyFile(path)
    return spark


def _require_one_pyspark() -> None:
    """pyspark and pyspark-client write the same package; two versions overwrite one another without a word."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        both = version("pyspark"), version("pyspark-client")
    except PackageNotFoundError:
        return
    if both[0] != both[1]:
        raise SparkDDPError(
            "SDDP-110",
            f"pyspark {both[0]} and pyspark-client {both[1]} are installed in the same folder.",
            f"pip install --force-reinstall pyspark=={both[0]} pyspark-client=={both[0]}",
        )


def _require_version(version: str) -> None:
    """Raises SparkDDPError SDDP-110 for a Spark that this was never run on."""
    if not version.startswith(SPARK_VERSIONS):
        raise SparkDDPError(
            "SDDP-110",
            f"the driver runs Spark {version}.",
            f"Use Spark {' or '.join(v.rstrip('.') for v in SPARK_VERSIONS)}.",
        )


def is_local(spark: Any) -> bool:
    return str(spark.sparkContext.master).startswith("local")


def require_slots(spark: Any, world_size: int, timeout: float | None, ranks_per_task: int = 1) -> None:
    """Wait briefly until Spark can run all ranks at once.

    Raises:
        SparkDDPError: SDDP-303 with both numbers. Spark itself would wait about ten minutes.
    """
    master, tasks = str(spark.sparkContext.master), world_size // ranks_per_task
    _refuse_gpus_on_local(spark)
    waits = timeout if timeout is not None else NEAR_TIMEOUT if master.startswith("spark://") else FAR_TIMEOUT
    limit = 0.0 if is_local(spark) else waits
    deadline, told = time.monotonic() + limit, False
    while (have := slots(spark)) < tasks:
        if time.monotonic() >= deadline:
            each = f" ({ranks_per_task} ranks a task)" if ranks_per_task > 1 else ""
            raise SparkDDPError(
                "SDDP-303",
                f"{world_size} ranks need {tasks} Spark slots at once{each}; {master} offers {have}"
                + (f" (waited {limit:g} s)" if limit else "")
                + _gpus_asked(spark),
                "Lower num_nodes or devices, lower cpus_per_rank, or give the application more executors "
                "(num_executors, executor_cores, total_executor_cores).",
            )
        if not told:
            print(f"sparkddp: waiting up to {limit:g} s for slots: have {have}, need {tasks}", flush=True)
            told = True
        time.sleep(POLL_SECONDS)


def _gpus_asked(spark: Any) -> str:
    """What else may be missing: no executor starts on a worker that offers fewer GPUs than one asks for."""
    conf = spark.sparkContext.getConf()
    task, executor = (conf.get(f"spark.{who}.resource.gpu.amount", "0") for who in ("task", "executor"))
    if float(task) <= 0:
        return ""
    return (
        f". Each task asks for {task} GPUs and each executor for {executor}: only workers that offer as many "
        "(spark.worker.resource.gpu.amount) start one"
    )


def _refuse_gpus_on_local(spark: Any) -> None:
    """Spark assigns no GPUs on a local master, and a stage that asks for them waits for ever."""
    asked = spark.sparkContext.getConf().get("spark.task.resource.gpu.amount", "0")
    if is_local(spark) and float(asked) > 0:
        raise SparkDDPError(
            "SDDP-307",
            f"conf sets spark.task.resource.gpu.amount={asked}, and a local master assigns no GPUs.",
            "Start a standalone master and worker on this computer (spark.worker.resource.gpu.*), or leave it out.",
        )


def slots(spark: Any) -> int:
    """Tasks that can run at the same time, by cores and by GPUs: what Spark's own barrier check counts."""
    context = spark.sparkContext._jsc.sc()
    return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))


def cores(spark: Any, threads_per_rank: int | None) -> Cores:
    """Cores of an executor and of a task."""
    context = spark.sparkContext
    per_task = int(context.getConf().get("spark.task.cpus", "1"))
    executors = max(1, len(context._jsc.sc().statusTracker().getExecutorInfos()) - (0 if is_local(spark) else 1))
    configured = context.getConf().get("spark.executor.cores")
    by_cores = context.defaultParallelism // executors
    per_executor = by_cores if is_local(spark) or not configured else int(configured)
    return Cores(max(1, per_executor), per_task, threads_per_rank)


def prove_shared(spark: Any, job: Job) -> None:
    """A round trip through the run directory: the driver writes, executors read and write, the driver reads.

    One task for each core: Spark spreads them over the executors that it has.

    On a local master there is nothing to prove.

    Raises:
        SparkDDPError: SDDP-302 naming the host that doesn't share it, SDDP-301 when it can't write.
    """
    if is_local(spark):
        return
    folder, nonce = paths.join(job.directory, paths.PROBE), job.nonce
    storage.write_text(paths.join(folder, "driver"), nonce)
    tasks = max(1, spark.sparkContext.defaultParallelism)
    frame = spark.range(0, tasks, 1, tasks)
    rows = frame.mapInArrow(lambda batches: _probe(batches, folder, nonce), "host string, problem string").collect()
    problems = {row["host"]: row["problem"] for row in rows if row["problem"]}
    for host, problem in problems.items():
        raise SparkDDPError(
            "SDDP-302",
            f"the executor on {host} and the driver don't share {folder}: {problem}.",
            "Set run_dir to storage that the Airflow worker, the driver and all executors share (NFS, s3://, hdfs://, …).",
        )
    seen = storage.names(folder)
    for host in {row["host"] for row in rows}:
        if f"executor-{paths.slug(host)}" not in seen:
            raise SparkDDPError(
                "SDDP-302",
                f"the driver does not see what the executor on {host} wrote to {folder}.",
                "Set run_dir to storage that the Airflow worker, the driver and all executors share.",
            )


def _probe(batches: Iterator[Any], folder: str, nonce: str) -> Iterator[Any]:
    import pyarrow

    for _ in batches:
        pass
    host = platform.node()
    yield pyarrow.RecordBatch.from_pydict({"host": [host], "problem": [_problem(folder, nonce, host)]})


def _problem(folder: str, nonce: str, host: str) -> str:
    try:
        if storage.read_text(paths.join(folder, "driver")) != nonce:
            return "it holds another run's probe"
        storage.write_text(paths.join(folder, f"executor-{paths.slug(host)}"), nonce)
    except FileNotFoundError:
        return "what the driver wrote isn't there"
    except SparkDDPError as error:
        return error.message
    return ""

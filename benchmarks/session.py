"""The Spark session of a run. All that is compared runs in the same one, under the settings that it started with."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import memory
from benchmarks.machine import ROOT
from benchmarks.setup import Setup


@contextmanager
def spark_session(setup: Setup) -> Iterator[Any]:
    """Spark as it comes, but for its scratch, which lies in the run's folder, and what would write into the output."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    setup.tell(f"starting Spark on {setup.master}")
    conf = {
        "spark.driver.memory": setup.driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.local.dir": str(setup.scratch / "spark"),
        "spark.sql.warehouse.dir": str(setup.scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(setup.master).appName("benchmarks")
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def same_settings(spark: Any) -> Iterator[None]:
    """What the work sets in the session must not change how the baseline writes after it."""
    before = dict(spark.conf.getAll)
    try:
        yield
    finally:
        after = dict(spark.conf.getAll)
        for key in after.keys() - before.keys():
            spark.conf.unset(key)
        for key, value in before.items():
            if after.get(key) != value:
                spark.conf.set(key, value)


def settle(spark: Any) -> None:
    """Collect garbage on both sides, so that each run finds the same heap; Spark then drops old shuffle files too."""
    gc.collect()
    spark.sparkContext._jvm.java.lang.System.gc()


def java_version(spark: Any) -> str:
    return str(spark.sparkContext._jvm.java.lang.System.getProperty("java.version"))


def jvm_pid(spark: Any) -> int:
    return int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())


def driver_memory(spark: Any) -> dict[str, float]:
    """MB: what this process and the JVM held at most since `reset_peaks`, and what is left of it after the garbage is gone."""
    jvm = jvm_pid(spark)
    at_most = {"peak of Python, MB": memory.peak(), "peak of the JVM, MB": memory.peak(jvm)}
    settle(spark)
    bean = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    held = {
        "Python after, MB": memory.resident(),
        "JVM after, MB": memory.resident(jvm),
        "heap used after, MB": int(bean.getHeapMemoryUsage().getUsed()),
    }
    return {name: value / memory.MB for name, value in {**at_most, **held}.items() if value is not None}


def reset_peaks(spark: Any) -> None:
    memory.reset_peak()
    memory.reset_peak(jvm_pid(spark))

"""A real standalone Spark cluster from the installed pyspark: one master, workers as processes of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
REGISTERED = re.compile(r"Successfully registered with master")
START_SECONDS = 60


@dataclass(frozen=True)
class Worker:
    """How one worker is started.

    Attributes:
        gpus: addresses that its discovery script gives out.
        prefix: command before the worker's own, such as `ip netns exec NAME` or `unshare …`.
        host: address that it binds.
    """

    cores: int = 2
    gpus: Sequence[str] = ()
    prefix: Sequence[str] = ()
    host: str = "127.0.0.1"


@dataclass
class Cluster:
    """A running cluster."""

    master: str
    logs: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def conf(self) -> dict[str, str]:
        """What an application needs to run here."""
        return {
            "spark.pyspark.python": sys.executable,
            "spark.ui.enabled": "false",
            "spark.log.level": "WARN",
            "spark.executor.memory": "1g",
        }


@contextmanager
def cluster(
    folder: Path, workers: Sequence[Worker], host: str = "127.0.0.1", prefix: Sequence[str] = ()
) -> Iterator[Cluster]:
    """Start a master and its workers, and wait until each is registered; all are ended afterwards."""
    with ExitStack() as stack:
        command = [*prefix, "org.apache.spark.deploy.master.Master", "--host", host, "--port", "0", "--webui-port", "0"]
        process, found = stack.enter_context(_daemon(command, folder / "master.log", STARTED, {}))
        running = Cluster(found.group(1), folder, [process])
        for index, worker in enumerate(workers):
            command = [
                *worker.prefix,
                "org.apache.spark.deploy.worker.Worker",
                "--host",
                worker.host,
                "--webui-port",
                "0",
            ]
            command += ["--cores", str(worker.cores), "--memory", "2g", "--work-dir", str(folder / f"work-{index}")]
            command += ["--properties-file", str(_worker_properties(folder, index, worker)), running.master]
            log = folder / f"worker-{index}.log"
            process, _ = stack.enter_context(_daemon(command, log, REGISTERED, {"SPARK_LOCAL_IP": worker.host}))
            running.processes.append(process)
        yield running


def _worker_properties(folder: Path, index: int, worker: Worker) -> Path:
    properties = folder / f"worker-{index}.conf"
    lines = ["spark.worker.cleanup.enabled false"]
    if worker.gpus:
        script = folder / f"gpus-{index}.sh"
        addresses = ",".join(f'"{address}"' for address in worker.gpus)
        script.write_text(f'#!/bin/sh\necho \'{{"name":"gpu","addresses":[{addresses}]}}\'\n')
        script.chmod(0o755)
        lines += [
            f"spark.worker.resource.gpu.amount {len(worker.gpus)}",
            f"spark.worker.resource.gpu.discoveryScript {script}",
        ]
    properties.write_text("\n".join(lines) + "\n")
    return properties


@contextmanager
def _daemon(
    command: Sequence[str], log: Path, ready: re.Pattern[str], extra: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], re.Match[str]]]:
    """A Spark daemon in a process group of its own, from when its log says that it is ready."""
    split = next(i for i, word in enumerate(command) if word.startswith("org.apache.spark"))
    launcher = [*command[:split], str(SPARK_HOME / "bin" / "spark-class"), *command[split:]]
    environment = {**os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_NO_DAEMONIZE": "1", **extra}
    with log.open("wb") as out:
        process = subprocess.Popen(
            launcher, stdout=out, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
    try:
        yield process, _await(process, log, ready)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _await(process: subprocess.Popen[bytes], log: Path, ready: re.Pattern[str]) -> re.Match[str]:
    """Follow the log until the line is there; Spark offers no other sign."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = ready.search(log.read_text(errors="replace"))
        if found:
            return found
        time.sleep(0.1)
    raise RuntimeError(f"the daemon did not start:\n{log.read_text(errors='replace')[-3000:]}")

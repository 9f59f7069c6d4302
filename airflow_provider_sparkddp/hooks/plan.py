"""The plan of a job as data. Pure: nothing is read, written or asked here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_sparkddp.spec import jobs, paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import CodeRef, Job
from airflow_provider_sparkddp.spec.paths import TryDir
from airflow_provider_sparkddp.spec.ports import ports
from airflow_provider_sparkddp.spec.secrets import refuse_secrets

DYNAMIC = "spark.dynamicAllocation.enabled"
CONF_SECRETS = (
    "Put it into a file that only Airflow's user may read and give properties_file=…, or into the cluster's spark-defaults; "
    "better: let the hosts' own identity reach the storage."
)
AIRFLOW_VERSIONS = ("3.1.", "3.2.", "3.3.")


@dataclass(frozen=True)
class Task:
    """Which try of which task: what Airflow's context says, as plain data."""

    dag_id: str
    task_id: str
    run_id: str
    map_index: int
    try_number: int

    @property
    def label(self) -> str:
        return f"{self.dag_id}.{self.task_id}" + (f"[{self.map_index}]" if self.map_index >= 0 else "")

    @property
    def owner(self) -> str:
        return paths.owner(self.dag_id, self.run_id, self.task_id, self.map_index)


def plan_job(
    kind: str, settings: Mapping[str, Any], task: Task, run_dir: str, nonce: str, code: tuple[CodeRef, ...]
) -> Job:
    """The job to write down as job.json in the try's own folder."""
    folder = TryDir.of(run_dir, task.task_id, task.map_index, task.try_number, nonce)
    return Job(kind, nonce, folder.uri, task.label, code, settings, owner=task.owner)


def run_dir(settings: Mapping[str, Any], storage_root: str, task: Task) -> str:
    """The task's run_dir, or the default: storage root / DAG id / run slug. Raises SparkDDPError SDDP-107."""
    return settings.get("run_dir") or paths.default_run_dir(storage_root, task.dag_id, task.run_id)


def require_airflow(version: str) -> None:
    """Raises SparkDDPError SDDP-110 for an Airflow that this was never run on."""
    if not version.startswith(AIRFLOW_VERSIONS):
        raise SparkDDPError(
            "SDDP-110",
            f"this is Airflow {version}.",
            f"Use Airflow {', '.join(v.rstrip('.') for v in AIRFLOW_VERSIONS)}.",
        )


def check_conf(conf: Mapping[str, Any] | None) -> None:
    """Raises SparkDDPError SDDP-105 when the user switched dynamic allocation on, SDDP-111 for a secret."""
    refuse_secrets("conf", conf, CONF_SECRETS)
    if str((conf or {}).get(DYNAMIC, "false")).strip().lower() == "true":
        raise SparkDDPError(
            "SDDP-105",
            f"conf sets {DYNAMIC}=true; a barrier stage needs all its executors at once and Spark refuses the two together.",
            f"Leave {DYNAMIC} out and set num_executors (or total_executor_cores).",
        )


def spark_conf(
    kind: str, settings: Mapping[str, Any], conf: Mapping[str, Any] | None, master: str, python: str
) -> dict[str, str]:
    """The Spark configuration of the application: the user's, on top of defaults that a job of ours needs.

    Args:
        python: the interpreter of the Airflow worker, which runs the driver, and the ranks on a local master.
    """
    check_conf(conf)
    ours = {
        DYNAMIC: "false",
        # INFO would flood the task log.
        "spark.log.level": "WARN",
        "spark.ui.showConsoleProgress": "false",
        "spark.pyspark.driver.python": python,
        # A slow rank is not a reason to start it twice.
        "spark.speculation": "false",
    }
    if master.startswith("local"):
        ours["spark.pyspark.python"] = python
    ranks = int(settings.get("ranks_per_task") or 1)
    if settings.get("cpus_per_rank") or ranks > 1:
        ours["spark.task.cpus"] = str((settings.get("cpus_per_rank") or 1) * ranks)
    if kind == jobs.TRAIN:
        # A worker that held CUDA, or a failed collective, is not for another stage.
        ours["spark.python.worker.reuse"] = "false"
    if settings.get("port_range"):
        first, last = ports(settings["port_range"])
        # Each tries the next one, up to the last, where one is taken.
        ours |= dict.fromkeys(("spark.driver.port", "spark.blockManager.port"), str(first))
        ours["spark.port.maxRetries"] = str(last - first)
    wants_gpu = kind == jobs.TRAIN and (settings.get("trainer") or {}).get("accelerator") in ("cuda", "gpu")
    if wants_gpu and not master.startswith("local"):
        ours["spark.task.resource.gpu.amount"] = str(ranks)
        # An executor holds whole tasks.
        ours["spark.executor.resource.gpu.amount"] = str(max(settings.get("devices") or 1, ranks))
    return {**ours, **{str(key): _text(value) for key, value in (conf or {}).items()}}


def variables_conf(master: str, env_vars: Mapping[str, Any]) -> dict[str, str]:
    """How a resource manager passes environment variables on to what it starts, as SparkSubmitHook writes it."""
    prefix = (
        "spark.yarn.appMasterEnv" if "yarn" in master else "spark.kubernetes.driverEnv" if "k8s" in master else None
    )
    return {f"{prefix}.{key}": str(value) for key, value in env_vars.items()} if prefix else {}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

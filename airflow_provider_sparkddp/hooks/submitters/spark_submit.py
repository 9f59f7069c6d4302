"""Through the Spark provider's own hook: its connection, its arguments, its command line. Client deploy mode."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowNotFoundException, BaseHook

from airflow_provider_sparkddp.hooks.bundle import ENTRY
from airflow_provider_sparkddp.hooks.submitters.base import Submitter, environment
from airflow_provider_sparkddp.spec.errors import SparkDDPError

# As a URI, a connection's scheme is its type.
CONNECTION_TYPES = ("spark", "yarn", "k8s", "local")


class SparkSubmit(Submitter):
    """Args:
    make_hook: from the application's arguments (after the entry file) to the provider's SparkSubmitHook, without env_vars.
    variables: environment variables for spark-submit, besides this process's own without Airflow's.
    """

    def __init__(self, make_hook: Callable[[list[str]], Any], variables: Mapping[str, str]) -> None:
        self._make_hook, self._variables = make_hook, variables
        self._hook: Any = None

    def run(self, job_uri: str, parent_pipe: str) -> str | None:
        self._hook = self._make_hook([job_uri, "--parent-pipe", parent_pipe])
        try:
            self._hook.submit(str(ENTRY), env={**environment(), **self._variables})
        except AirflowException as error:
            return str(error)
        return None

    def cancel(self) -> None:
        process = getattr(self._hook, "_submit_sp", None)
        if process is not None and process.poll() is None:
            process.terminate()


def require_connection(conn_id: str) -> Any:
    """The Spark connection.

    Raises:
        SparkDDPError: SDDP-106 when there is none (the provider's own hook would silently submit to YARN), or it is another
            kind of connection.
    """
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise SparkDDPError(
            "SDDP-106",
            f"the connection conn_id={conn_id!r} is not defined.",
            f"Add it: airflow connections add {conn_id} --conn-type spark --conn-host spark://master --conn-port 7077 "
            "(or --conn-host 'local[2]' to try things out).",
        ) from error
    if connection.conn_type not in CONNECTION_TYPES:
        raise SparkDDPError(
            "SDDP-106",
            f"the connection conn_id={conn_id!r} is of type {connection.conn_type!r}.",
            f"Give a connection of type {', '.join(CONNECTION_TYPES)}.",
        )
    return connection


def require_client_mode(deploy_mode: str | None) -> None:
    """Raises SparkDDPError SDDP-102 for deploy mode cluster."""
    if deploy_mode == "cluster":
        raise SparkDDPError(
            "SDDP-102",
            "deploy mode 'cluster' is set; this version can't follow a driver that the cluster holds yet.",
            "Set deploy_mode='client' on the task or in the connection's extra.",
        )


def launcher(spark_binary: str | None) -> tuple[str | None, dict[str, str]]:
    """spark-submit, and the environment it needs: the one on PATH, or the one of the installed pyspark.

    Raises:
        SparkDDPError: SDDP-109 when there is no spark-submit or no Java.
    """
    java_home = os.environ.get("JAVA_HOME")
    if not shutil.which("java") and not (java_home and (Path(java_home) / "bin" / "java").exists()):
        raise SparkDDPError(
            "SDDP-109",
            "Spark needs Java 17 or newer, and none is on PATH or in JAVA_HOME.",
            "apt-get install openjdk-17-jre-headless",
        )
    if spark_binary or shutil.which("spark-submit"):
        return spark_binary, {}
    home = _installed_spark()
    if home is None:
        raise SparkDDPError(
            "SDDP-109",
            "spark-submit is neither on PATH nor in an installed pyspark.",
            "pip install 'airflow-provider-sparkddp[airflow]'",
        )
    return str(home / "bin" / "spark-submit"), {"SPARK_HOME": str(home)}


def _installed_spark() -> Path | None:
    spec = find_spec("pyspark")
    for location in (spec.submodule_search_locations or []) if spec else []:
        if (Path(location) / "bin" / "spark-submit").exists():
            return Path(location)
    return None

"""Spark's launcher is found before anything is asked of it, and what it can't do yet is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyspark
import pytest

from airflow_provider_sparkddp.hooks.submitters.base import environment
from airflow_provider_sparkddp.hooks.submitters.spark_submit import (
    SparkSubmit,
    launcher,
    require_client_mode,
    require_connection,
)
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support.refusals import refused


def program(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


def test_without_java_the_command_that_mends_it_is_told(path: Path) -> None:
    program(path, "spark-submit")
    with refused("SDDP-109", "Java 17", "apt-get install openjdk-17-jre-headless"):
        launcher(None)


def test_a_java_home_without_java_is_no_java(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(path))
    with refused("SDDP-109"):
        launcher(None)


def test_java_home_will_do(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "jre" / "bin", "java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jre"))
    program(path, "spark-submit")
    assert launcher(None) == (None, {})


def test_the_users_spark_submit_is_taken_as_it_stands(path: Path) -> None:
    program(path, "java")
    assert launcher("/opt/spark/bin/spark-submit") == ("/opt/spark/bin/spark-submit", {})


def test_without_one_on_path_the_installed_pysparks_is_taken(path: Path) -> None:
    program(path, "java")
    binary, environment = launcher(None)
    home = Path(pyspark.__file__).parent
    assert binary == str(home / "bin" / "spark-submit")
    assert environment == {"SPARK_HOME": str(home)}
    assert os.access(binary, os.X_OK)


def test_deploy_mode_cluster_is_refused_until_it_is_built() -> None:
    with refused("SDDP-102", "'cluster'", "deploy_mode='client'"):
        require_client_mode("cluster")
    require_client_mode("client")
    require_client_mode(None)


def test_a_connection_that_is_defined_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_HERE", "spark://local%5B2%5D")
    assert require_connection("spark_here").host == "local[2]"


def test_cancelling_before_the_start_is_harmless() -> None:
    submitter = SparkSubmit(lambda arguments: None, {})
    submitter.cancel()
    submitter.cancel()


@pytest.mark.parametrize("kind", ["http", "postgres", "fs"])
def test_a_connection_of_another_kind_is_refused_before_spark(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps({"conn_type": kind, "host": "h", "password": "hunter2"}))
    with pytest.raises(SparkDDPError, match="SDDP-106.*'other' is of type") as caught:
        require_connection("other")
    assert "hunter2" not in str(caught.value)


def test_a_job_gets_no_setting_connection_or_variable_of_airflows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRFLOW__API__SECRET_KEY", "AIRFLOW_CONN_DB", "AIRFLOW_VAR_TOKEN", "__AIRFLOW_SUPERVISOR_FD"):
        monkeypatch.setenv(name, "hunter2")
    assert "hunter2" not in environment().values()
    assert environment()["PATH"] == os.environ["PATH"]

"""Runs a job as an Airflow task does: job.json, the Spark provider's hook, spark-submit, result.json.

As a program it does so for a job that is described on standard input, so that a test can kill it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.hooks import bundle, plan
from airflow_provider_sparkddp.hooks.sparkddp import SparkDDPHook
from airflow_provider_sparkddp.hooks.submitters.process import Process
from airflow_provider_sparkddp.hooks.submitters.spark_submit import SparkSubmit, launcher
from airflow_provider_sparkddp.spec import jobs
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.results import JobResult
from tests.support.jobs import job as make_job

CONN = "sparkddp_test"


def connection(master: str) -> dict[str, str]:
    """The environment variable that defines the Spark connection."""
    head, _, port = master.rpartition(":")
    parts = {"host": head, "port": int(port)} if port.isdigit() and head else {"host": master}
    return {f"AIRFLOW_CONN_{CONN.upper()}": json.dumps({"conn_type": "spark", **parts})}


def submit(
    job: Job,
    master: str,
    conf: Mapping[str, str],
    py_files: Sequence[str] = (),
    secrets: Mapping[str, str] | None = None,
) -> JobResult:
    """Run the job to its end. The connection must stand in the environment."""
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    provider = bundle.provider_zip()
    zips = [provider, *bundle.user_zips(list(py_files), Path.cwd())]
    job = replace(job, code=tuple(bundle.store(job.directory, made) for made in zips))
    if job.kind not in (jobs.PARTITION, jobs.TRAIN):
        return SparkDDPHook().run(job, provider, lambda path: Process(None, path, print))
    binary, environment = launcher(None)
    properties = plan.spark_conf(job.kind, job.settings, conf, master, sys.executable)

    def make_submitter(zip_path: str) -> SparkSubmit:
        return SparkSubmit(
            lambda arguments: SparkSubmitHook(
                conf=properties,
                conn_id=CONN,
                py_files=zip_path,
                application_args=arguments,
                name=job.label,
                spark_binary=binary,
            ),
            environment,
        )

    return SparkDDPHook().run(job, provider, make_submitter, secrets)


def main() -> None:
    asked: dict[str, Any] = json.load(sys.stdin)
    os.environ.update(connection(asked["master"]))
    job = make_job(asked["kind"], Path(asked["folder"]), **asked["settings"])
    submit(job, asked["master"], asked["conf"], asked["py_files"])


if __name__ == "__main__":
    main()

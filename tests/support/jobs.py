"""Runs a job as Airflow's side does, through the provider's hook and the real entry, without a DAG."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.spec import jobs
from airflow_provider_sparkddp.spec.jobs import CodeRef, Job

# What is small enough for a test, where that isn't the operator's own default.
DEFAULTS: dict[str, dict[str, Any]] = {
    jobs.PARTITION: {**jobs.defaults(jobs.PARTITION), "num_nodes": 2, "validation": None},
    jobs.TRAIN: {**jobs.defaults(jobs.TRAIN), "batch_size": 32, "trainer": {"max_epochs": 1}},
}


def job(kind: str, folder: Path, code: Sequence[CodeRef] = (), **settings: Any) -> Job:
    """A checked job whose folder is `folder/<kind>-<nonce>`."""
    nonce = uuid.uuid4().hex[:12]
    checked = jobs.check(kind, {**DEFAULTS.get(kind, {}), **settings})
    if kind == jobs.TRAIN:
        checked |= {"manifest": checked.pop("partitions"), "model_kwargs": checked["model_kwargs"] or {}}
        checked["alias"] = checked["alias"] or "model"
    return Job(kind, nonce, f"file://{folder}/{kind}-{nonce}", f"test.{kind}", tuple(code), checked)


def wanted() -> None:
    """A task that is still there."""


def read_body(uri: str) -> Mapping[str, Any]:
    return json.loads(Path(uri.removeprefix("file://")).read_text())["body"]

"""Puts a trained model where it is to stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from airflow_provider_sparkddp.operators.base import InProcess
from airflow_provider_sparkddp.spec import jobs
from airflow_provider_sparkddp.spec.jobs import CodeRef


class ModelExportOperator(InProcess):
    """Write a training's model, free of its trainer, whole or not at all; its alias is kept.

    The XCom is `{"model": uri, "alias", "formats", "sha256", "bytes"}`.

    Args:
        model: `train.output`, or the path of a stored model. (templated)
        destination: absolute URI of the folder; an earlier model there is replaced in one step. (templated)
        formats: `["safetensors"]`. (templated)
        python: interpreter to run with, holding the `[cluster]` extra; default Airflow's own. (templated)
        trusted_modules: modules that may be imported for the model, besides those that its DAG named. (templated)
        py_files: code that the model needs, when `model` is a path. (templated)
        run_dir: as for PartitionToParquetOperator. (templated)
        storage_conn_id: refused until it is built.
    """

    kind = jobs.EXPORT
    template_fields: Sequence[str] = (*jobs.ARGUMENTS[jobs.EXPORT], "py_files")
    ui_color = "#fff2cc"

    def __init__(
        self,
        *,
        model: Any,
        destination: str,
        formats: Sequence[str] = ("safetensors",),
        python: str | None = None,
        trusted_modules: Sequence[str] | None = None,
        py_files: Sequence[str] | None = None,
        run_dir: str | None = None,
        storage_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.model = model
        self.destination = destination
        self.formats = formats
        self.python = python
        self.trusted_modules = trusted_modules
        self.py_files = py_files
        self.run_dir = run_dir
        self.storage_conn_id = storage_conn_id
        self.check_known()

    def settings(self, checked: dict[str, Any]) -> tuple[dict[str, Any], tuple[CodeRef, ...]]:
        return self.with_model(checked)

    def passed_on(
        self, settings: Mapping[str, Any], code: Sequence[CodeRef], values: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {"trusted_modules": settings["trusted_modules"], "code": [asdict(ref) for ref in code]}

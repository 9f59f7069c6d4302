"""Proves the exported model: it loads in a fresh process, predicts like the trained one, and is good enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_sparkddp.operators.base import InProcess
from airflow_provider_sparkddp.spec import jobs
from airflow_provider_sparkddp.spec.jobs import CodeRef
from airflow_provider_sparkddp.spec.references import manifest_uri


class ModelValidationOperator(InProcess):
    """Load an exported model, predict the held-out rows, check alias, shape, finiteness, parity and the metric gates.

    A failed check fails the task without a retry and says which. The XCom is the verdict with its figures.

    Args:
        model: `export.output`, or the path of a stored model. (templated)
        data: `partition.output`, or the path of a manifest; its test rows are predicted, or its validation rows where it has
            none. (templated)
        metrics: metric (mae, mse, rmse, median_ae, r2) -> `{"max": …}`, `{"min": …}`, or
            `{"max_ratio": …, "baseline": column, "offset": "train_median" | "train_mean" | number}`: the metric over that of
            predicting `column + offset`. (templated)
        alias: what the alias must be; default the model's own. (templated)
        python, trusted_modules, py_files, run_dir: as for ModelExportOperator. (templated)
        storage_conn_id: refused until it is built.
    """

    kind = jobs.VALIDATE
    template_fields: Sequence[str] = (*jobs.ARGUMENTS[jobs.VALIDATE], "py_files")
    ui_color = "#ead1dc"

    def __init__(
        self,
        *,
        model: Any,
        data: Any,
        metrics: Mapping[str, Any] | None = None,
        alias: str | None = None,
        python: str | None = None,
        trusted_modules: Sequence[str] | None = None,
        py_files: Sequence[str] | None = None,
        run_dir: str | None = None,
        storage_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.model = model
        self.data = data
        self.metrics = metrics
        self.alias = alias
        self.python = python
        self.trusted_modules = trusted_modules
        self.py_files = py_files
        self.run_dir = run_dir
        self.storage_conn_id = storage_conn_id
        self.check_known()

    def settings(self, checked: dict[str, Any]) -> tuple[dict[str, Any], tuple[CodeRef, ...]]:
        settings, code = self.with_model(checked)
        return {**settings, "data": manifest_uri(checked["data"], "data")}, code

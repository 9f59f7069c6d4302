"""The operators of the how-to page on reuse and retention are taken as they are written there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pendulum
from airflow.providers.common.compat.sdk import DAG

from airflow_provider_sparkddp.operators import PartitionToParquetOperator

PAGE = Path(__file__).parents[3] / "docs/how-to/reuse-and-retention.md"


def test_every_snippet_makes_a_task() -> None:
    names: dict[str, Any] = {"PartitionToParquetOperator": PartitionToParquetOperator}
    with DAG("page", schedule=None, start_date=pendulum.datetime(2026, 1, 1)) as dag:
        for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
            exec(block, names)
    assert dag.task_ids == ["partition", "by_day", "kept_two_weeks"]
    assert (names["partition"].reuse, names["by_day"].fingerprint, names["kept_two_weeks"].retention) == (
        True,
        "{{ dag_run.run_after | ds }}",
        14,
    )

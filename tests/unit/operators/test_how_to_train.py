"""The training operators of the how-to pages are taken as they are written there."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_provider_sparkddp.operators import SparkDDPTrainOperator

PAGES = Path(__file__).parents[3] / "docs/how-to"


@pytest.mark.parametrize(
    ("page", "tasks"), [("start-from-a-model.md", ["train"]), ("environments.md", ["train", "packed"])]
)
def test_every_snippet_makes_a_task(page: str, tasks: list[str]) -> None:
    earlier = SimpleNamespace(output="file:///partitions/manifest.json")
    names: dict[str, Any] = {"SparkDDPTrainOperator": SparkDDPTrainOperator, "partition": earlier}
    with DAG("page", schedule=None, start_date=pendulum.datetime(2026, 1, 1)) as dag:
        for block in re.findall(r"^```python\n(.*?)^```", (PAGES / page).read_text(), re.DOTALL | re.MULTILINE):
            exec(block, names)
    assert dag.task_ids == tasks

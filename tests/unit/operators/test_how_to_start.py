"""The operators of the how-to page on starting from a model are taken as they are written there."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pendulum
from airflow.providers.common.compat.sdk import DAG

from airflow_provider_sparkddp.operators import SparkDDPTrainOperator

PAGE = Path(__file__).parents[3] / "docs/how-to/start-from-a-model.md"


def test_every_snippet_makes_a_task() -> None:
    earlier = SimpleNamespace(output="file:///partitions/manifest.json")
    names: dict[str, Any] = {"SparkDDPTrainOperator": SparkDDPTrainOperator, "partition": earlier}
    with DAG("page", schedule=None, start_date=pendulum.datetime(2026, 1, 1)) as dag:
        for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
            exec(block, names)
    assert dag.task_ids == ["train"]
    assert names["train"].init_from == "s3://models/delay/champion"

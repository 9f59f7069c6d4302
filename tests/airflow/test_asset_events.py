"""What a consumer of an asset finds in its event, in Airflow's database: where the result lies, how much, how it was judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.airflow.conftest import Airflow, Ran

pytestmark = pytest.mark.slow
FILE = Path(__file__).parent / "dags" / "assets.py"


@pytest.fixture(scope="module")
def ran(airflow: Airflow) -> Ran:
    ran = airflow.test_dag(FILE, "assets")
    assert ran.outcome["state"].rpartition(".")[2].lower() == "success", ran.log[-4000:]
    return ran


def events(ran: Ran, task_id: str) -> dict[str, Any]:
    """Asset -> its event's extra."""
    return {event["asset"]: event["extra"] for event in ran.outcome["asset_events"] if event["task"] == task_id}


def test_a_partition_tells_every_asset_its_manifest_and_its_rows(ran: Ran) -> None:
    values = ran.xcom("partition")
    told = {"manifest": values["manifest"], "rows": values["total_rows"], "reused": False}
    assert events(ran, "partition") == {"flights_partitioned": told, "s3://bucket/flights": told}
    assert sum(told["rows"].values()) == 400
    assert Path(told["manifest"].removeprefix("file://")).exists()


def test_a_training_and_an_export_tell_where_the_model_lies_and_its_alias(ran: Ran) -> None:
    for task_id, asset in (("train", "trained"), ("export", "exported")):
        told = {"model": ran.xcom(task_id)["model"], "alias": "two_lines"}
        assert events(ran, task_id) == {asset: told}


def test_a_validation_tells_its_verdict(ran: Ran) -> None:
    told = {"model": ran.xcom("export")["model"], "alias": "two_lines", "verdict": "passed"}
    assert events(ran, "validate") == {"validated": told}

"""A later DAG run takes the earlier run's partitions, as long as nothing has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.airflow.conftest import Airflow

pytestmark = pytest.mark.slow

FILE = Path(__file__).parent / "dags" / "assets.py"


def test_a_later_run_reuses_until_the_users_word_for_the_source_changes(airflow: Airflow) -> None:
    first, second, third = (airflow.test_dag(FILE, "again", version=version) for version in ("v1", "v1", "v2"))
    values = [ran.xcom("partition") for ran in (first, second, third)]
    assert [value["reused"] for value in values] == [False, True, False]
    assert len({ran.outcome["run_id"] for ran in (first, second, third)}) == 3
    assert values[0]["manifest"] == values[1]["manifest"] != values[2]["manifest"]
    assert values[1] == values[0] | {"reused": True}
    assert "nothing was written" in second.log_of("partition")
    written = {path.parents[3].name for path in airflow.storage.glob("again/*/partition/unmapped/*/data")}
    assert len(written) == 2, "the second run holds no data"

"""The how-to page of the partition operator runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_sparkddp.spec.manifests import TEST, TRAIN, VALIDATION, Manifest
from tests.airflow.conftest import Airflow, Ran

pytestmark = pytest.mark.slow
PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/partition-a-table.md"


@pytest.fixture(scope="module")
def ran(airflow: Airflow, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("how-to")
    table, dag = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    # The page's own text but for the place of the table: a test writes nowhere else.
    (folder / "make_sales.py").write_text(table.replace("/tmp/sales", f"{folder}/sales"))
    (folder / "sales_partitions.py").write_text(dag.replace("/tmp/sales", f"{folder}/sales"))
    subprocess.run([sys.executable, folder / "make_sales.py"], check=True)
    return airflow.test_dag(folder / "sales_partitions.py", "sales_partitions")


def manifest(ran: Ran, task: str) -> Manifest:
    assert ran.task(task) == "success", ran.log_of(task)[-4000:]
    uri = ran.xcom(task)["manifest"]
    return Manifest.from_text(Path(uri.removeprefix("file://")).read_text(), uri)


def test_rows_with_expressions_splits_and_encoders(ran: Ran) -> None:
    found = manifest(ran, "by_rows")
    assert [c.name for c in found.columns] == ["region", "price", "sold", "weekday"]
    assert found.encoders["region"]["values"] == ["north", "south", "west"]
    assert set(found.shares) == {TRAIN, VALIDATION, TEST}
    price = found.column("price")
    assert price is not None
    assert isinstance(price.minimum, float)
    assert price.minimum > 0.5


def test_series_stay_together_and_give_their_last_days(ran: Ran) -> None:
    found = manifest(ran, "by_shop")
    assert (found.group_by, found.order_by) == (("shop",), ("ds",))
    assert (found.rows(VALIDATION), found.rows(TEST)) == (60 * 7, 60 * 7)
    rows = found.rank_rows(TRAIN)
    assert max(rows) <= 1.02 * sum(rows) / 2


def test_the_log_shows_what_changed_and_ends_with_a_table(ran: Ran) -> None:
    manifest(ran, "compared")
    log = ran.log_of("compared")
    assert "weekday" in log
    assert re.search(r"rank\s+train rows\s+train bytes", log)
    assert re.search(r"column\s+type\s+nulls\s+NaN", log)
    assert re.search(r"phase\s+seconds", log)
    assert ran.xcom("compared")["drift"]

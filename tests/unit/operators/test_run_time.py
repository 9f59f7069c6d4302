"""The check's second run: on all values, after rendering, before Spark is asked. Stopped there by a place to run of our own."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowException, AirflowFailException, Param

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.hooks.submitters.base import Submitter
from airflow_provider_sparkddp.operators import (
    ModelExportOperator,
    ModelValidationOperator,
    PartitionToParquetOperator,
    SparkDDPTrainOperator,
)
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import Failure, SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.manifests import Column
from airflow_provider_sparkddp.spec.results import JobResult
from tests.support.samples import manifest, with_column

RUN_ID = "manual__2026-01-01T00:00:00+00:00"
PARAMS = {"nodes": 2, "rows": 64, "rate": 0.01, "epochs": 3, "names": ["delay", "hour"], "alias": "007"}


class Recorder(Submitter):
    """Runs nothing: keeps the job, and publishes what the job would have."""

    def __init__(self, values: Mapping[str, Any], failure: SparkDDPError | None = None) -> None:
        self.values, self.failure, self.jobs = dict(values), failure, list[Job]()

    def run(self, job_uri: str, parent_pipe: str) -> str | None:
        job = Job.from_text(storage.read_text(job_uri), job_uri)
        self.jobs.append(job)
        failure = Failure.of(self.failure) if self.failure else None
        # A training also says in which module the class that it built is defined.
        values = {"class_module": "my_layers", **self.values} if job.kind == "train" else self.values
        result = JobResult(job.kind, job.nonce, {} if failure else values, failure=failure)
        storage.write_text(paths.join(paths.parent(job_uri), paths.RESULT), result.to_text())
        return None

    def cancel(self) -> None:
        pass


@pytest.fixture
def dag(tmp_path: Path) -> DAG:
    params = {name: Param(value) for name, value in PARAMS.items()}
    made = DAG("line", schedule=None, start_date=pendulum.datetime(2026, 1, 1), params=params)
    made.fileloc = str(tmp_path / "dags" / "line.py")
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "my_models.py").write_text("class Net: pass\n")
    return made


@pytest.fixture
def run_dir(tmp_path: Path) -> str:
    return (tmp_path / "run").as_uri()


@pytest.fixture
def stored(tmp_path: Path) -> str:
    """URI of a manifest on storage."""
    uri = (tmp_path / "partition" / "manifest.json").as_uri()
    storage.write_text(uri, manifest().to_text())
    return uri


def execute(operator: Any, recorder: Recorder, map_index: int | None = -1, try_number: int = 1) -> dict[str, Any]:
    """As Airflow runs a task that was started by hand: no logical date, templates rendered first."""
    ti = SimpleNamespace(
        dag_id="line", task_id=operator.task_id, run_id=RUN_ID, map_index=map_index, try_number=try_number
    )
    context = {"ti": ti, "dag": operator.dag, "params": PARAMS, "logical_date": None, "run_id": RUN_ID}
    operator.render_template_fields(context)
    operator.submitter = lambda provider_zip, settings, context: recorder
    return operator.execute(context)


def test_params_rendered_to_text_become_numbers_and_lists(dag: DAG, run_dir: str, stored: str) -> None:
    train = SparkDDPTrainOperator(
        task_id="train",
        dag=dag,
        run_dir=run_dir,
        partitions=stored,
        model="my_models:Net",
        model_kwargs={"rate": "{{ params.rate }}"},
        num_nodes="{{ params.nodes }}",
        features="{{ params.names }}",
        target="late",
        batch_size="{{ params.rows }}",
        alias="{{ params.alias }}",
        trainer={"max_epochs": "{{ params.epochs }}", "detect_anomaly": "{{ False }}"},
    )
    recorder = Recorder({"model": "file:///m"})
    execute(train, recorder)
    settings = recorder.jobs[0].settings
    assert (settings["num_nodes"], settings["batch_size"], settings["alias"]) == (2, 64, "007")
    assert settings["features"] == ["delay", "hour"]
    assert settings["trainer"] == {"max_epochs": 3, "detect_anomaly": False}
    # The constructor's own annotations decide about model_kwargs, where the class is at hand.
    assert settings["model_kwargs"] == {"rate": "0.01"}


def test_with_native_rendering_an_alias_of_digits_stays_text(dag: DAG, run_dir: str, stored: str) -> None:
    dag.render_template_as_native_obj = True
    train = SparkDDPTrainOperator(
        task_id="train",
        dag=dag,
        run_dir=run_dir,
        partitions=stored,
        model="my_models:Net",
        features="{{ params.names }}",
        target="late",
        batch_size="{{ params.rows }}",
        alias="{{ params.alias }}",
    )
    recorder = Recorder({"model": "file:///m"})
    execute(train, recorder)
    settings = recorder.jobs[0].settings
    assert (settings["alias"], settings["batch_size"], settings["features"]) == ("007", 64, ["delay", "hour"])


@pytest.mark.parametrize("form", ["output", "text", "path", "folder"])
def test_an_earlier_tasks_output_is_taken_as_it_is_as_text_or_as_a_path(
    dag: DAG, run_dir: str, stored: str, form: str
) -> None:
    output = {"manifest": stored, "files": ["data/a.parquet"], "rows": {"train": [5, 4]}}
    given = {"output": output, "text": str(output), "path": stored, "folder": paths.parent(stored)}[form]
    train = SparkDDPTrainOperator(
        task_id="train",
        dag=dag,
        run_dir=run_dir,
        partitions=given,
        model="my_models:sub.Net",
        features=["delay"],
        target="late",
    )
    recorder = Recorder({"model": "file:///m"})
    execute(train, recorder)
    assert recorder.jobs[0].settings["manifest"] == stored
    assert recorder.jobs[0].settings["alias"] == "Net"


def test_code_and_trust_travel_down_the_line_with_the_output(dag: DAG, run_dir: str, stored: str) -> None:
    kwargs = {"loss": {"$import": "my_losses:Huber"}}
    train = SparkDDPTrainOperator(
        task_id="train",
        dag=dag,
        run_dir=run_dir,
        partitions=stored,
        model="my_models:Net",
        model_kwargs=kwargs,
        features=["delay"],
        target="late",
        py_files=["my_models.py"],
    )
    trained = Recorder({"model": "file:///m", "alias": "Net"})
    output = execute(train, trained)
    assert output["trusted_modules"] == ["my_models", "my_losses", "my_layers"]
    assert [ref["modules"] for ref in output["code"]] == [("my_models",)]
    # Through XCom it is JSON; rendered into a text it is Python's.
    export = ModelExportOperator(
        task_id="export", dag=dag, run_dir=run_dir, model=str(output), destination="file:///models/a"
    )
    exported = Recorder({"model": "file:///models/a"})
    output = execute(export, exported)
    validate = ModelValidationOperator(
        task_id="validate", dag=dag, run_dir=run_dir, model=output, data=stored, trusted_modules=["more"]
    )
    validated = Recorder({"verdict": "passed"})
    assert execute(validate, validated) == {"verdict": "passed"}
    for job in (exported.jobs[0], validated.jobs[0]):
        assert [asdict(ref)["modules"] for ref in job.code] == [("airflow_provider_sparkddp",), ("my_models",)]
        assert {"my_models", "my_losses"} <= set(job.settings["trusted_modules"])
    assert validated.jobs[0].settings["trusted_modules"][0] == "more"


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        (
            "{{ {'model': 'file:///champion', 'alias': 'net', 'code': []} }}",
            {"path": "file:///champion", "strict": True},
        ),
        (
            {"path": "{{ 'file:///' }}last.ckpt", "strict": "{{ False }}"},
            {"path": "file:///last.ckpt", "strict": False},
        ),
        ("{{ params.get('champion', '') }}", None),
        ("{{ none }}", None),
    ],
    ids=["an output", "a checkpoint", "an empty field", "none"],
)
def test_what_a_training_starts_from_is_known_once_rendered(
    dag: DAG, run_dir: str, stored: str, given: Any, settings: Any
) -> None:
    data = {"partitions": stored, "model": "my_models:Net", "features": ["delay"], "target": "late"}
    train = SparkDDPTrainOperator(task_id="train", dag=dag, run_dir=run_dir, init_from=given, **data)
    recorder = Recorder({"model": "file:///m"})
    execute(train, recorder)
    assert recorder.jobs[0].settings["init_from"] == settings
    assert [ref.modules for ref in recorder.jobs[0].code] == [("airflow_provider_sparkddp",)], "only tensors are taken"


def test_a_wheel_goes_down_the_line_by_the_names_of_its_modules(dag: DAG, run_dir: str, stored: str) -> None:
    wheel = Path(dag.fileloc).parent / "far_nets-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("far_nets/__init__.py", "far_nets-1.2.dist-info/WHEEL"):
            archive.writestr(name, "")
    data = {"partitions": stored, "features": ["delay"], "target": "late", "run_dir": run_dir}
    train = SparkDDPTrainOperator(task_id="train", dag=dag, model="far_nets:Net", py_files=[wheel.name], **data)
    output = execute(train, Recorder({"model": "file:///m"}))
    export = ModelExportOperator(task_id="export", dag=dag, run_dir=run_dir, model=output, destination="file:///a")
    exported = Recorder({"model": "file:///a"})
    execute(export, exported)
    assert [ref.modules for ref in exported.jobs[0].code] == [("airflow_provider_sparkddp",), ("far_nets",)]


def partition(dag: DAG, **change: Any) -> PartitionToParquetOperator:
    return PartitionToParquetOperator(**{"task_id": "partition", "dag": dag, "source": {"table": "t"}, **change})


def test_a_run_without_a_logical_date_has_its_own_folder_below_the_storage_root(
    dag: DAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__SPARKDDP__STORAGE_ROOT", (tmp_path / "root").as_uri())
    recorder = Recorder({})
    execute(partition(dag), recorder)
    job = recorder.jobs[0]
    assert job.directory.startswith(f"{(tmp_path / 'root').as_uri()}/line/manual__2026-01-01T00_00_00_00_00-")
    assert job.directory.endswith(f"/partition/unmapped/1-{job.nonce}")
    assert job.label == "line.partition"


@pytest.mark.parametrize(
    ("configured", "given", "place"),
    [
        ("file:///root", None, "file:///root"),
        ("file:///root", "file:///mine", "file:///root"),
        ("", "file:///mine", "file:///mine"),
    ],
)
def test_what_may_be_reused_is_found_below_the_storage_root_or_else_the_run_dir(
    configured: str, given: str | None, place: str, monkeypatch: pytest.MonkeyPatch, dag: DAG
) -> None:
    monkeypatch.setenv("AIRFLOW__SPARKDDP__STORAGE_ROOT", configured)
    settings, _ = partition(dag).settings({"run_dir": given})
    assert settings["storage_root"] == place


def test_in_airflows_home_where_nothing_is_set(monkeypatch: pytest.MonkeyPatch, dag: DAG) -> None:
    monkeypatch.delenv("AIRFLOW__SPARKDDP__STORAGE_ROOT", raising=False)
    settings, _ = partition(dag).settings({"run_dir": None})
    assert settings["storage_root"].startswith("file:///") and settings["storage_root"].endswith("/sparkddp")


def test_mapped_copies_and_later_tries_never_share_a_folder(dag: DAG, run_dir: str) -> None:
    recorder = Recorder({})
    for map_index, try_number in [(None, 1), (0, 1), (1, 1), (1, 2), (1, 2)]:
        operator = partition(dag, task_id=f"p{len(recorder.jobs)}", run_dir=run_dir)
        operator.task_id = "partition"
        execute(operator, recorder, map_index, try_number)
    folders = [job.directory.removeprefix(f"{run_dir}/partition/").rpartition("-")[0] for job in recorder.jobs]
    assert folders == ["unmapped/1", "0/1", "1/1", "1/2", "1/2"]
    assert len({job.directory for job in recorder.jobs}) == 5
    assert recorder.jobs[1].label == "line.partition[0]"


def test_a_mapped_operator_is_checked_when_each_copy_is_made(dag: DAG, run_dir: str) -> None:
    mapped = PartitionToParquetOperator.partial(
        task_id="mapped", dag=dag, run_dir=run_dir, num_nodes="{{ params.nodes }}"
    ).expand(source=[{"table": "a"}, {"tabel": "b"}])
    recorder = Recorder({})
    execute(mapped.unmap({"source": {"table": "a"}}), recorder, map_index=0)
    assert recorder.jobs[0].settings["source"] == {"table": "a"}
    assert recorder.jobs[0].settings["num_nodes"] == 2
    with pytest.raises(SparkDDPError, match="SDDP-101"):
        mapped.unmap({"source": {"tabel": "b"}})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"num_nodes": "{{ 'two' }}"}, "SDDP-101"),
        ({"validation": "{{ 7 }}"}, "SDDP-101"),
        ({"run_dir": "{{ 'runs' }}"}, "SDDP-107"),
        ({"columns": "{{ 'a' }}"}, "SDDP-101"),
        ({"source": {"table": "{{ '' }}"}}, "SDDP-101"),
        ({"py_files": "{{ ['missing.py'] }}"}, "SDDP-108"),
        ({"py_files": ["{{ 'missing' }}.py"]}, "SDDP-108"),
        ({"py_files": "{{ 'my_models.py' }}"}, "SDDP-101"),
    ],
    ids=str,
)
def test_a_value_that_is_wrong_once_rendered_fails_the_task_without_a_retry(
    dag: DAG, run_dir: str, change: dict[str, Any], code: str
) -> None:
    recorder = Recorder({})
    with pytest.raises(AirflowFailException, match=code):
        execute(partition(dag, **{"run_dir": run_dir, **change}), recorder)
    assert recorder.jobs == [], "before anything was submitted"


def test_py_files_rendered_to_text_are_a_list_again(dag: DAG, run_dir: str) -> None:
    recorder = Recorder({})
    execute(partition(dag, run_dir=run_dir, py_files="{{ ['my_models.py'] }}"), recorder)
    assert [ref.modules for ref in recorder.jobs[0].code] == [("airflow_provider_sparkddp",), ("my_models",)]


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (None, "SDDP-204"),
        (Column("extra", "string"), "SDDP-205"),
        (Column("extra", "double", nans=1), "SDDP-206"),
        (Column("extra", "long", maximum=2**24 + 1), "SDDP-207"),
    ],
)
def test_what_the_manifest_tells_is_told_before_spark_is_asked(
    dag: DAG, run_dir: str, stored: str, column: Column | None, code: str
) -> None:
    if column:
        storage.write_text(stored, with_column(column).to_text())
    train = SparkDDPTrainOperator(
        task_id="train",
        dag=dag,
        run_dir=run_dir,
        partitions=stored,
        model="my_models:Net",
        features=["delay", "extra"],
        target="late",
    )
    recorder = Recorder({})
    with pytest.raises(AirflowFailException, match=f"{code}.*'extra'"):
        execute(train, recorder)
    assert recorder.jobs == []


@pytest.mark.parametrize("change", ["missing", "changed"])
def test_a_manifest_that_is_missing_or_changed_fails_the_task_by_name(
    dag: DAG, run_dir: str, stored: str, tmp_path: Path, change: str
) -> None:
    file = tmp_path / "partition" / "manifest.json"
    if change == "missing":
        file.unlink()
    else:
        file.write_text(file.read_text().replace('"delay"', '"delai"'))
    train = SparkDDPTrainOperator(
        task_id="train", dag=dag, run_dir=run_dir, partitions=stored, model="m:N", features=["delay"], target="late"
    )
    with pytest.raises(AirflowFailException, match="SDDP-208.*manifest.json"):
        execute(train, Recorder({}))


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (SparkDDPError("SDDP-405", "a rank was lost", "Look."), AirflowException),
        (SparkDDPError("SDDP-404", "a rank raised", "Mend."), AirflowFailException),
    ],
    ids=["may be retried", "may not"],
)
def test_only_what_a_retry_can_mend_is_retried(
    dag: DAG, run_dir: str, failure: SparkDDPError, kind: type[Exception]
) -> None:
    with pytest.raises(AirflowException) as caught:
        execute(partition(dag, run_dir=run_dir), Recorder({}, failure))
    assert type(caught.value) is kind
    assert str(caught.value) == str(failure)


def test_killing_a_task_that_runs_nothing_is_harmless(dag: DAG) -> None:
    for operator in (
        partition(dag),
        ModelExportOperator(task_id="e", dag=dag, model="file:///m", destination="s3://b/m"),
    ):
        operator.on_kill()

"""The whole line on an object store: nothing of it lies on a disk that tasks would have to share."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.manifests import TRAIN, VALIDATION, data_uri
from airflow_provider_sparkddp.storage.manifests import read_manifest
from tests.airflow.conftest import Airflow, Ran
from tests.support.s3 import ACCESS, Bucket

pytestmark = pytest.mark.slow

DAGS = Path(__file__).parent / "dags"
FILE = DAGS / "on_s3.py"
ROWS = 400


@dataclass(frozen=True)
class OnS3(Airflow):
    """The Airflow of these tests, with its storage in the bucket."""

    root: str

    def environment(self, dags: Path) -> dict[str, str]:
        return {**super().environment(dags), "AIRFLOW__SPARKDDP__STORAGE_ROOT": self.root}


@pytest.fixture(scope="module")
def on_s3(airflow: Airflow, bucket: Bucket, tmp_path_factory: pytest.TempPathFactory) -> OnS3:
    return OnS3(airflow.home, tmp_path_factory.mktemp("unused"), f"{bucket.uri}/sparkddp")


@pytest.fixture(scope="module")
def line(on_s3: OnS3) -> Ran:
    return on_s3.test_dag(FILE, "on_s3")


@pytest.fixture(scope="module")
def errors(on_s3: OnS3) -> Ran:
    return on_s3.test_dag(FILE, "on_s3_errors")


@pytest.mark.parametrize("task_id", ["partition", "train", "export", "validate"])
def test_every_task_of_the_line_succeeds(line: Ran, task_id: str) -> None:
    assert line.task(task_id) == "success", line.log_of(task_id)[-6000:]


def test_every_row_lies_once_in_the_files_of_the_manifest(line: Ran) -> None:
    uri = line.xcom("partition")["manifest"]
    manifest = read_manifest(uri)
    tables = [
        pq.ParquetFile(io.BytesIO(storage.read_bytes(data_uri(uri, file)))).read(columns=["s"])
        for file in manifest.files
    ]
    assert sorted(int(s) for table in tables for s in table.column("s").to_pylist()) == list(range(ROWS))
    assert {file.split for file in manifest.files} == {TRAIN, VALIDATION}
    assert max(rows for file in manifest.files for rows in file.row_groups) == 50
    assert all(storage.size(data_uri(uri, file)) == file.bytes for file in manifest.files)


def test_what_the_line_keeps_lies_in_the_bucket(line: Ran, on_s3: OnS3, bucket: Bucket) -> None:
    keys = bucket.keys()
    for name in (*(f"/{task}/unmapped/1-" for task in ("partition", "train", "export", "validate")), "/code/"):
        assert any(name in key for key in keys), name
    for end in (paths.JOB, paths.RESULT, paths.MANIFEST, "progress/000001.json", "sparkddp/models/on s3/model.json"):
        assert any(key.endswith(end) for key in keys), end
    assert not [key for key in keys if key.endswith(".tmp")]
    assert list(on_s3.storage.iterdir()) == []


def test_the_log_tells_how_the_training_goes(line: Ran) -> None:
    assert "epoch 1/2 · step" in line.log_of("train")


def test_the_model_is_loaded_from_the_bucket(line: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_sparkddp.runtime.models import load_model

    monkeypatch.syspath_prepend(str(DAGS))
    model = load_model(line.xcom("export")["model"], trusted_modules=["line_models"])
    rows: Any = [{"a": 1.0, "b": 0.5}, {"a": 0.0, "b": 1.0}]
    assert model.predict(rows).column_names == ["on_s3"]
    assert model.predict(rows).num_rows == 2


def test_the_secret_key_is_kept_to_the_environment(line: Ran, bucket: Bucket) -> None:
    secret = ACCESS["AWS_SECRET_ACCESS_KEY"]
    assert secret not in line.log
    assert secret not in str(line.outcome)
    stored = bucket.keys()
    assert stored
    found = [key for key in stored if secret.encode() in storage.read_bytes(f"{bucket.uri}/{key}")]
    assert not found


ERRORS = {
    "no_bucket": ("SDDP-301", "s3://no-such-bucket/runs/code/"),
    "no_jar": ("SDDP-310", "org.apache.hadoop:hadoop-aws:"),
}


@pytest.mark.parametrize("task_id", ERRORS)
def test_what_storage_lacks_fails_the_task_with_its_code(errors: Ran, task_id: str) -> None:
    code, words = ERRORS[task_id]
    log = errors.log_of(task_id)
    assert errors.task(task_id) == "failed", log[-4000:]
    assert f"[{code}]" in log
    assert words in log
    assert "What to do:" in log

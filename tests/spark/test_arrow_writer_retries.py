"""A task that fails is tried again by Spark: what its first attempt left is named by nobody, and scratch space is given back."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.partition import arrow_writer
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.spark.conftest import start_session, stop_session

pytestmark = pytest.mark.slow

ROWS = 1000


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def spark(scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local Spark that tries each task twice."""
    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    session = start_session("local[2,2]", {"spark.local.dir": str(scratch), "spark.sql.warehouse.dir": warehouse})
    yield session
    stop_session(session)
    # Also of tasks that Spark killed because another one had failed.
    assert not left_in(scratch)


def frame(spark: Any) -> Any:
    """Each task begins with a row for training, then has one for validation: its files are put in that order."""
    rows = spark.range(0, ROWS, 1, 2)
    return rows.selectExpr("id", "IF(id % 2 = 0, 'train', 'validation') AS sparkddp_split")


def in_attempts(batches: Iterator[Any], in_the_way: str) -> Iterator[Any]:
    """Before the rows of a second attempt, what the first one met with is gone."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    if context.attemptNumber() > 0:
        Path(in_the_way).unlink(missing_ok=True)
    yield from batches


def fails_half_way(batches: Iterator[Any]) -> Iterator[Any]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    yield from batches
    if context.attemptNumber() == 0:
        raise RuntimeError("lost half-way")


def ids(folder: str, names: list[str]) -> list[int]:
    files = [pq.ParquetFile(io.BytesIO(storage.read_bytes(paths.join(folder, name)))) for name in names]
    return sorted(value for file in files for value in file.read().column("id").to_pylist())


def left_in(scratch: Path) -> list[Path]:
    return list(scratch.rglob("sparkddp-*"))


def test_files_of_a_failed_attempt_are_named_by_nobody(spark: Any, scratch: Path, tmp_path: Path) -> None:
    # A file where the folder for validation should be: both tasks put their training rows and fail at the next file.
    in_the_way = tmp_path / "sparkddp_split=validation"
    in_the_way.write_text("x")
    tried = frame(spark).mapInArrow(partial(in_attempts, in_the_way=str(in_the_way)), frame(spark).schema)
    names = arrow_writer.write(tried, tmp_path.as_uri(), ["id"], "zstd", 100)
    assert ids(tmp_path.as_uri(), names) == list(range(ROWS))
    assert len(names) == 4
    left = set(storage.files_below(tmp_path.as_uri())) - set(names)
    assert left, "no attempt failed after it had put a file"
    assert all(name.startswith("sparkddp_split=train/") for name in left)
    assert not left_in(scratch)


def test_an_attempt_that_loses_its_input_puts_nothing(spark: Any, scratch: Path, tmp_path: Path) -> None:
    tried = frame(spark).mapInArrow(fails_half_way, frame(spark).schema)
    names = arrow_writer.write(tried, tmp_path.as_uri(), ["id"], "zstd", 100)
    assert ids(tmp_path.as_uri(), names) == list(range(ROWS))
    assert storage.files_below(tmp_path.as_uri()) == names
    assert not left_in(scratch)


def test_what_fails_at_every_attempt_reaches_the_driver(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SparkDDPError) as caught:
        arrow_writer.write(frame(spark), (tmp_path / "file").as_uri(), ["id"], "zstd", 100)
    assert caught.value.code == "SDDP-301"
    assert caught.value.message.startswith("the executor on ")


def test_rows_wait_on_the_disks_that_spark_was_given(spark: Any, scratch: Path, tmp_path: Path) -> None:
    def found(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for _ in batches:
            pass
        yield pyarrow.RecordBatch.from_pydict({"disk": [arrow_writer._disk(0) or "the system's own"]})

    disks = {row["disk"] for row in spark.range(2).mapInArrow(found, "disk string").collect()}
    assert all(Path(disk).is_relative_to(scratch) for disk in disks), disks

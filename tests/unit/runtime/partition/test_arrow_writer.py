"""What a task of the arrow writer does with its batches, without Spark."""

from __future__ import annotations

import platform
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparkddp.runtime.partition import arrow_writer
from airflow_provider_sparkddp.runtime.partition.arrow_writer import _by_split, _disk, _naming, _Part, _Target
from airflow_provider_sparkddp.runtime.sources import faults
from airflow_provider_sparkddp.spec.errors import SparkDDPError


def part(path: Path, schema: pa.Schema, rows: int) -> _Part:
    return _Part(path, schema, _Target("file:///nowhere", "zstd", rows))


@given(batches=st.lists(st.integers(0, 40), max_size=12), limit=st.integers(1, 50))
def test_row_groups_are_full_but_for_the_last(
    batches: list[int], limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("part") / "file.parquet"
    made, start = part(path, pa.schema([("id", pa.int64())]), limit), 0
    for rows in batches:
        made.add(pa.record_batch({"id": range(start, start + rows)}, schema=pa.schema([("id", pa.int64())])))
        start += rows
    made.close()
    found = pq.ParquetFile(path)
    groups = [found.metadata.row_group(i).num_rows for i in range(found.metadata.num_row_groups)]
    assert found.read().column("id").to_pylist() == list(range(start))
    assert groups == [limit] * (start // limit) + ([start % limit] if start % limit else [])


def test_memory_holds_one_row_group_however_many_rows_come(tmp_path: Path) -> None:
    schema, limit, per_batch, num_groups = pa.schema([("x", pa.float64())]), 20_000, 1_000, 60
    made, before, most = part(tmp_path / "file.parquet", schema, limit), pa.total_allocated_bytes(), 0
    for start in range(0, num_groups * limit, per_batch):
        # Random-looking numbers: what compresses to nothing would hide what is kept.
        numbers = [((start + i) * 2654435761 % 2**32) / 3 for i in range(per_batch)]
        made.add(pa.record_batch({"x": pa.array(numbers, pa.float64())}))
        most = max(most, pa.total_allocated_bytes() - before)
    made.close()
    assert pq.ParquetFile(tmp_path / "file.parquet").metadata.num_rows == num_groups * limit
    # Parquet's own pages and dictionaries come on top of a row group, whatever its size.
    assert most < num_groups * limit * 8 / 3, f"{most} bytes"


def test_a_batch_is_taken_apart_by_split_in_its_order() -> None:
    splits = ["train", "test", "train", None, "test"]
    batch = pa.record_batch({"id": range(5), "sparkddp_split": splits})
    found = {split: rows.to_pydict() for split, rows in _by_split(batch)}
    null = arrow_writer.NULL_SPLIT
    assert found == {"train": {"id": [0, 2]}, "test": {"id": [1, 4]}, null: {"id": [3]}}
    assert list(_by_split(batch.slice(0, 0))) == []


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file of this process may grow beyond."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def on_the_driver(error: SparkDDPError) -> SparkDDPError:
    """The error as the driver reads it from what Spark says of the task."""
    said = f"Job aborted: Traceback …\nairflow_provider_sparkddp.spec.errors.SparkDDPError: {error}\n SQLSTATE: 38000\n\tat org.…"
    told = faults.told(RuntimeError(said))
    assert told is not None
    return told


def test_scratch_space_that_is_full_is_told_to_the_driver(tmp_path: Path) -> None:
    numbers = pa.record_batch({"x": pa.array([i * 2654435761 % 2**32 for i in range(50_000)], pa.int64())})
    made = part(tmp_path / "file.parquet", numbers.schema, 100)
    with pytest.raises(SparkDDPError) as caught, file_size_limit(20_000), _naming(str(tmp_path)):
        made.add(numbers)
    told = on_the_driver(caught.value)
    assert told.code == "SDDP-301"
    assert told.message.startswith(f"the executor on {platform.node()}: {tmp_path} cannot be written (OSError")
    assert "File too large" in told.message
    assert "spark.local.dir" in told.remedy


def test_what_storage_refuses_keeps_its_words_and_remedy() -> None:
    words = 'two\nlines, "quotes", {braces} and ümlauts'
    with pytest.raises(SparkDDPError) as caught, _naming("anywhere"):
        raise SparkDDPError("SDDP-301", words, "do this.")
    told = on_the_driver(caught.value)
    assert (told.code, told.remedy) == ("SDDP-301", "do this.")
    assert told.message.startswith(f"the executor on {platform.node()}: {words}")


def test_a_fault_of_ours_is_no_fault_of_storage() -> None:
    with pytest.raises(ValueError, match="a fault of ours"), _naming("anywhere"):
        raise ValueError("a fault of ours")


def test_spark_s_disks_are_taken_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disks = [tmp_path / name for name in ("one", "two")]
    for disk in disks:
        disk.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", ",".join(map(str, [*disks, tmp_path / "gone"])))
    assert [_disk(task) for task in range(3)] == [str(disks[0]), str(disks[1]), str(disks[0])]
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    assert _disk(0) is None


def test_over_spark_connect_executors_write() -> None:
    from pyspark.sql.connect.session import SparkSession

    remote = object.__new__(SparkSession)
    assert arrow_writer.choose(remote, "file:///shared", "auto") == "arrow"
    assert arrow_writer.choose(remote, "file:///shared", "spark") == "spark"

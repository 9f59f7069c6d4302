"""Files that don't agree or are malformed, formats that Spark lacks, and faults of SQL, on an embedded Spark."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_sparkddp.runtime.sources import mismatches, reading, shapes
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support.sources import CSV, NAME, found, of, refusal, refused, rows, write

# -- schemas


def test_files_of_one_schema_are_read_as_they_are(few: None, local_spark: Any, folder: Path) -> None:
    path = write(folder, {NAME.format("parquet"): {"a": [1], "b": ["x"]}, "other.parquet": {"b": ["y"], "a": [2]}})
    assert found(local_spark, of(path)) == []
    assert rows(local_spark, of(path)) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_a_type_that_differs_is_an_error_that_names_column_types_and_files(
    kind: str, few: None, local_spark: Any, folder: Path
) -> None:
    path = write(
        folder,
        {
            NAME.format(kind): {"a": pa.array([1], pa.int32())},
            f"b.{kind}": {"a": pa.array([2], pa.int64())},
            f"c.{kind}": {"a": pa.array([3], pa.int64())},
        },
    )
    error = refused(local_spark, of(path, kind))
    assert error.code == "SDDP-212"
    assert f"Column 'a' is bigint in 2 files such as file://{folder}/b.{kind}, int in " in error.message
    assert f"int in file://{folder}/{NAME.format(kind)}." in error.message
    assert "cannot be tolerated" in error.remedy


def test_a_type_that_differs_cannot_be_tolerated(local_spark: Any, folder: Path) -> None:
    path = write(folder, {"a.parquet": {"a": [1], "b": [1]}, "b c.parquet": {"a": ["x"]}})
    error = refused(local_spark, of(path, "parquet", "schemas"))
    assert error.code == "SDDP-212"
    assert "Column 'a' is bigint in" in error.message
    assert f"string in file://{folder}/b c.parquet" in error.message
    assert "'b'" not in error.message
    assert "only what is missing" in error.remedy


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_a_missing_column_is_null_where_that_is_tolerated(kind: str, local_spark: Any, folder: Path) -> None:
    path = write(folder, {f"a.{kind}": {"a": [1]}, f"b.{kind}": {"a": [2], "später": ["x"]}})
    error = refused(local_spark, of(path, kind))
    assert error.code == "SDDP-212"
    assert "Column 'später' is " in error.message
    assert f"missing in file://{folder}/a.{kind}" in error.message
    assert "source['tolerate']=['schemas']" in error.remedy
    for source in (of(path, kind, "schemas"), of(path, kind, mergeSchema="true")):
        assert rows(local_spark, source, "a") == [{"a": 1, "später": None}, {"a": 2, "später": "x"}]
        (line,) = found(local_spark, source)
        assert "missing in" in line


def test_what_only_the_writer_distinguishes_is_no_difference(local_spark: Any, folder: Path) -> None:
    path = write(
        folder,
        {
            "a.parquet": {"t": pa.array(["x"]), "A": pa.array([1]), "l": pa.array([[1.0]])},
            "b.parquet": {
                "t": pa.array(["y"]).dictionary_encode(),
                "a": pa.array([2]),
                "l": pa.array([[1.0]], pa.large_list(pa.float64())),
            },
        },
    )
    local_spark.sql("SELECT timestamp'2013-01-01 00:00:00' AS at").coalesce(1).write.parquet(f"{path}/micros")
    local_spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        local_spark.sql("SELECT timestamp'2013-01-02 00:00:00' AS at").coalesce(1).write.parquet(f"{path}/int96")
    finally:
        local_spark.conf.unset("spark.sql.parquet.outputTimestampType")
    assert found(local_spark, of([f"{path}/a.parquet", f"{path}/b.parquet"])) == []
    assert found(local_spark, of([f"{path}/micros", f"{path}/int96"])) == []


def test_where_python_cannot_read_the_files_spark_compares_them(
    local_spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(folder, {"a.parquet": {"a": [1], "once": [1]}, "b.parquet": {"a": [2], "later": [1]}})

    def unreachable(uri: str) -> Any:
        raise SparkDDPError("SDDP-301", f"{uri} needs a Python package.", "Install it.")

    monkeypatch.setattr(shapes.storage, "open_binary", unreachable)
    error = refused(local_spark, of(path))
    assert error.code == "SDDP-212"
    assert "' is missing in some of the files, which Spark alone could compare (SparkDDPError: " in error.message
    (line,) = found(local_spark, of(path, "parquet", "schemas"))
    assert line in error.message
    # Whichever file Spark took the schema from, a type that differs is seen.
    write(folder, {"b.parquet": {"a": ["x"]}})
    with pytest.raises(SparkDDPError) as caught:
        mismatches.findings(local_spark, of(path), reading.read(local_spark, of(path)))
    assert caught.value.code == "SDDP-212"
    assert "CANNOT_MERGE_SCHEMAS" in caught.value.message


# -- folders' types


def test_folders_whose_values_lose_something_by_their_type_are_an_error(local_spark: Any, folder: Path) -> None:
    path = write(folder, {f"code={c}/größe=1.5/p q.parquet": {"a": [i]} for i, c in enumerate(["007", "8", "+9"])})
    error = refused(local_spark, of(path))
    assert error.code == "SDDP-212"
    assert "The folders of column 'code' become int, by which 2 of their values change: code=+9, code=007." in (
        error.message
    )
    assert "spark.sql.sources.partitionColumnTypeInference.enabled" in error.remedy
    assert "größe" not in error.message
    (line,) = found(local_spark, of(path, "parquet", "partition_types"))
    assert "'code' become int" in line
    # A folder of the path that was asked for is no column.
    assert found(local_spark, of(f"{path}/code=007")) == []
    assert found(local_spark, of(f"{path}/code=0*")) == []
    local_spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    try:
        assert found(local_spark, of(path)) == []
        assert [row["code"] for row in rows(local_spark, of(path), "a")] == ["007", "8", "+9"]
    finally:
        local_spark.conf.unset("spark.sql.sources.partitionColumnTypeInference.enabled")


# -- what cannot be read


def test_a_path_that_is_missing_is_named_also_in_a_list(local_spark: Any, folder: Path) -> None:
    path = write(folder, {"da.parquet": {"a": [1]}, "auch da.parquet": {"a": [2]}})
    both = [f"{path}/da.parquet", f"{path}/auch da.parquet"]
    assert rows(local_spark, of(both)) == [{"a": 1}, {"a": 2}]
    error = refused(local_spark, of([*both, f"{path}/nicht da"]))
    assert error.code == "SDDP-203"
    assert error.message.startswith(f"path {both[0]} and 2 more: [PATH_NOT_FOUND]")
    assert f"file:{folder}/nicht da." in error.message


def test_an_empty_folder_says_what_is_skipped(local_spark: Any, folder: Path) -> None:
    error = refused(local_spark, of(write(folder, {"_hidden.parquet": {"a": [1]}})))
    assert error.code == "SDDP-203"
    assert "skipped by Spark" in error.remedy


@pytest.mark.parametrize("kind", ["avro", "delta", "iceberg", "nonsense"])
def test_a_format_that_spark_lacks_names_its_package(kind: str, local_spark: Any, folder: Path) -> None:
    error = refused(local_spark, of(write(folder, {"a": "x"}), kind))
    assert error.code == "SDDP-310"
    assert repr(kind) in error.message
    version = local_spark.version
    minor = ".".join(version.split(".")[:2])
    wanted = {
        "avro": f"packages='org.apache.spark:spark-avro_2.13:{version}'",
        "delta": f"packages='io.delta:delta-spark_{minor}_2.13:",
        "iceberg": f"packages='org.apache.iceberg:iceberg-spark-runtime-{minor}_2.13:",
        "nonsense": "Correct the name",
    }
    assert wanted[kind] in error.remedy


def test_a_storage_that_spark_has_no_jar_for_names_its_package(local_spark: Any) -> None:
    error = refused(local_spark, of("s3a://bucket/table"))
    assert error.code == "SDDP-310"
    assert "s3a://" in error.message
    assert "packages='org.apache.hadoop:hadoop-aws:" in error.remedy
    error = refused(local_spark, of("abc://bucket/table"))
    assert (error.code, "abc://" in error.message) == ("SDDP-310", True)


def test_a_corrupt_file_is_named_in_a_message_that_can_be_read(local_spark: Any, folder: Path) -> None:
    whole = {"a": list(range(1000))}
    write(folder, {"whole.parquet": whole, "p/a.parquet": whole})
    content = (folder / "whole.parquet").read_bytes()
    broken = bytes([*content[:60], *(255 for _ in content[60:-600]), *content[-600:]])
    zipped = gzip.compress(b"id,x\n" + b"1,2\n" * 5000)
    cases = {
        "cut among whole ones": ({"p/b c.parquet": content[: len(content) // 2]}, "p", "parquet", "b c.parquet"),
        "cut alone": ({"q/b.parquet": content[: len(content) // 2]}, "q", "parquet", "q/b.parquet"),
        "text by that name": ({"r/t ü.parquet": "hello\nworld\n"}, "r", "parquet", "t ü.parquet"),
        "broken within": ({"s/m.parquet": broken}, "s", "parquet", "s/m.parquet"),
        "text as ORC": ({"t/m.orc": "hello\nworld\n"}, "t", "orc", "t/m.orc"),
        "a cut gzip": ({"u/x.csv.gz": zipped[: len(zipped) // 2]}, "u", "csv", "u/x.csv.gz"),
        "no gzip": ({"v/x.csv.gz": "id,x\n1,2\n"}, "v", "csv", "v/x.csv.gz"),
    }
    for case, (content, where, kind, named) in cases.items():
        path = write(folder, content)
        error = refused(local_spark, of(f"{path}/{where}", kind, **(CSV if kind == "csv" else {})))
        assert (case, error.code) == (case, "SDDP-203")
        assert named in error.message, case
        assert len(error.message) <= 1000, case
        assert error.message.count("\n") == 0, case


def test_faults_of_sql_show_spark_s_position(local_spark: Any) -> None:
    error = refused(local_spark, {"sql": "SELECT id,\n  id FORM x WHERE id = 3 FROM range(3)"})
    assert error.code == "SDDP-203"
    assert error.message.endswith(
        "\n== SQL ==\nSELECT id,\n  id FORM x WHERE id = 3 FROM range(3)\n----------^^^\n"
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. (line 2, pos 10)."
    )
    error = refused(local_spark, {"sql": "SELECT id,\n  idd FROM range(3)"})
    assert "[UNRESOLVED_COLUMN.WITH_SUGGESTION]" in error.message
    assert "`idd`" in error.message
    assert "line 2 pos 2" in error.message
    assert "Range (0, 3" not in error.message


def test_faults_of_an_expression_name_the_argument(local_spark: Any) -> None:
    source, where = {"sql": "SELECT * FROM range(3)"}, "id > AND id < " + "1" * 3000
    frame = reading.read(local_spark, source)
    for expression, words in ((where, "(line 1, pos "), ("idd > 3", "`idd`")):
        with pytest.raises(Exception) as caught:
            frame.where(expression)
        error = reading.failed(source, caught.value, what=f"where={expression!r}")
        assert error.code == "SDDP-203"
        assert error.message.startswith("where=")
        assert words in error.message
        assert "Correct the expression" in error.remedy
        assert len(error.message) <= 1000


# -- storage, and what executors raise


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield disk
    # Lazily: Spark leaves files open that it could not close.
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def written(spark: Any, folder: Path, num_rows: int) -> SparkDDPError:
    frame = spark.range(num_rows).selectExpr("id", "rand() AS a", "rand() AS b").repartition(2)
    return refusal(spark, lambda: frame.write.parquet(f"file://{folder}/out"), {"sql": "SELECT 1"})


def test_storage_that_fills_up_is_no_fault_of_the_source(local_spark: Any, small_disk: Path) -> None:
    error = written(local_spark, small_disk, 1_000_000)
    assert error.code == "SDDP-301"
    assert error.retry
    assert f"file:{small_disk}/out" in error.message
    assert error.message.count("No space left on device") == 1
    assert "Free space" in error.remedy


def test_storage_that_refuses_is_no_fault_of_the_source(local_spark: Any, small_disk: Path, tmp_path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    (tmp_path / "file").write_text("in the way")
    for folder in (small_disk, tmp_path / "file"):
        error = written(local_spark, folder, 10)
        assert error.code == "SDDP-301"
        assert str(folder) in error.message
        assert len(error.message) <= 1000


def raises_our_error(batches: Iterator[Any]) -> Iterator[Any]:
    raise SparkDDPError("SDDP-302", "file:///x is not seen here.", "Share it.")
    yield from batches


def raises_another(batches: Iterator[Any]) -> Iterator[Any]:
    raise ValueError("a value that no one wants")
    yield from batches


def test_what_python_raises_on_an_executor_comes_without_its_trace(local_spark: Any) -> None:
    source = {"sql": "SELECT 1"}
    frame = local_spark.range(1)
    error = refusal(local_spark, frame.mapInArrow(raises_our_error, "id long").collect, source)
    assert (error.code, error.message, error.remedy) == ("SDDP-302", "file:///x is not seen here.", "Share it.")
    error = refusal(local_spark, frame.mapInArrow(raises_another, "id long").collect, source)
    assert error.code == "SDDP-203"
    assert error.message == "sql SELECT 1: PythonException: ValueError: a value that no one wants."


def test_an_error_in_an_expression_is_one_of_the_source_also_while_it_is_written(
    local_spark: Any, tmp_path: Path
) -> None:
    source = {"sql": "SELECT cast(raise_error('broken row') AS int) AS x FROM range(3)"}
    frame = reading.read(local_spark, source)
    error = refusal(local_spark, lambda: frame.write.parquet(f"file://{tmp_path}/out"), source)
    assert error.code == "SDDP-203"
    assert "[USER_RAISED_EXCEPTION] broken row" in error.message

"""CSV and JSON: headers that differ, malformed lines, and the user's own schema, on an embedded Spark."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.sources import mismatches, reading
from tests.support.sources import CSV, NAME, found, of, refusal, refused, rows, write


def test_headers_that_differ_are_an_error_that_names_file_and_column(few: None, local_spark: Any, folder: Path) -> None:
    files = {f"{i}.csv": "id,x,y\n1,2,3\n" for i in range(3)}
    path = write(folder, files | {NAME.format("csv"): "id,y,x\n1,2,3\n"})
    error = refused(local_spark, of(path, "csv", **CSV))
    assert error.code == "SDDP-212"
    assert f"Column 'y' (in place of 'x') of the header in file://{folder}/{NAME.format('csv')}" in error.message
    assert "id, y, x; in 3 files such as" in error.message


def test_csv_columns_are_matched_by_name_where_differing_headers_are_tolerated(
    few: None, local_spark: Any, folder: Path
) -> None:
    path = write(
        folder,
        {
            "day=1/a.csv": "id,x\n1,1\n2,2\n",
            "day=2/b ü.csv": "x,id,neu\n2.5,3,c\n",
            "day=2/leer.csv": "",
        },
    )
    source = of(path, "csv", "schemas", **CSV)
    assert reading.read(local_spark, source).dtypes == [
        ("id", "int"),
        ("x", "double"),
        ("day", "int"),
        ("neu", "string"),
    ]
    assert rows(local_spark, source, "id") == [
        {"id": 1, "x": 1.0, "day": 1, "neu": None},
        {"id": 2, "x": 2.0, "day": 1, "neu": None},
        {"id": 3, "x": 2.5, "day": 2, "neu": "c"},
    ]
    (line,) = found(local_spark, source)
    assert "b ü.csv: x, id, neu" in line


def test_headers_without_or_with_equal_names_are_compared_as_well(local_spark: Any, folder: Path) -> None:
    path = write(folder, {"a.csv": ",x,x\n0,1,2\n", "b.csv": "\ufeff,x,X\r\n1,2,3\r\n", "c.csv": '"","x","x"\n'})
    assert found(local_spark, of(path, "csv", header="true")) == []
    assert rows(local_spark, of(path, "csv", "schemas", header="true"), "_c0")[1] == {"_c0": "1", "x1": "2", "x2": "3"}


def test_headers_in_files_that_only_spark_can_open(local_spark: Any, folder: Path) -> None:
    path = write(folder, {"a.csv": "id,x\n1,2\n", "b.csv.gz": gzip.compress(b"id,x\n3,4\n")})
    assert found(local_spark, of(path, "csv", **CSV)) == []
    local_spark.createDataFrame([("5", "6")], "id string, z string").coalesce(1).write.csv(
        f"{path}/c", header=True, compression="deflate"
    )
    error = refused(local_spark, of([f"{path}/a.csv", f"{path}/c"], "csv", **CSV))
    assert error.code == "SDDP-212"
    assert "'z'" in error.message or "'x'" in error.message


BAD_CSV = {"gut.csv": "id,x\n1,1.5\n", NAME.format("csv"): "id,x\n2,2.5\n3,3.5,zu viel\n4\n5,5.5\n"}


@pytest.mark.parametrize("wanted", ["*", "id"], ids=["all columns", "one column"])
def test_malformed_csv_lines_are_counted_when_the_job_fails_of_them(
    wanted: str, local_spark: Any, folder: Path
) -> None:
    source = of(write(folder, BAD_CSV), "csv", **CSV)
    frame = reading.read(local_spark, source)
    assert mismatches.findings(local_spark, source, frame) == []
    error = refusal(local_spark, frame.select(wanted).collect, source)
    assert error.code == "SDDP-212"
    assert f"Malformed lines found: 2. 2 in file:{folder}/{NAME.format('csv')}, first '3,3.5,zu viel'" in error.message
    assert "(3 values for 2 columns)" in error.message
    assert "source['tolerate']=['malformed']" in error.remedy


def test_malformed_csv_lines_are_dropped_and_counted_where_they_are_tolerated(local_spark: Any, folder: Path) -> None:
    source = of(write(folder, BAD_CSV), "csv", "malformed", **CSV)
    frame = reading.read(local_spark, source)
    assert sorted(row["id"] for row in frame.select("id").collect()) == [1, 2, 5]
    assert frame.count() == 3
    (line,) = mismatches.findings(local_spark, source, frame)
    assert line.startswith(f"Malformed lines dropped: 2. 2 in file:{folder}/{NAME.format('csv')}")


def test_with_a_schema_a_malformed_line_decides_on_no_type(local_spark: Any, folder: Path) -> None:
    """Inferred, a column of numbers with one line that holds none is text, or its line is dropped and decides all the same."""
    path = write(folder, {"a.csv": "id,x\n1,1.5\n2,zwei\n3,3.5,zu viel\n"})
    source = of(path, "csv", "malformed", header="true") | {"schema": "id BIGINT, x DOUBLE"}
    assert rows(local_spark, source) == [{"id": 1, "x": 1.5}]
    assert found(local_spark, source)[0].startswith("Malformed lines dropped: 2.")
    error = refused(local_spark, {**source, "tolerate": []})
    assert "first '2,zwei' (column 'x')" in error.message


def test_a_schema_that_is_not_the_header_s_is_refused(local_spark: Any, folder: Path) -> None:
    path = write(folder, {"a.csv": "id,x\n1,2\n", "b.csv": "id,x,y\n1,2,3\n"})
    of_one = of(f"{path}/a.csv", "csv", header="true") | {"schema": "x BIGINT, id DOUBLE"}
    error = refused(local_spark, of_one)
    assert error.code == "SDDP-212"
    assert "CSV header" in error.message
    assert "source['tolerate']=['schemas']" in error.remedy
    longer = of(f"{path}/a.csv", "csv", header="true") | {"schema": "id INT, x INT, z INT"}
    assert refused(local_spark, longer).code == "SDDP-212"
    both = of(path, "csv", "schemas", header="true") | {"schema": "X DOUBLE, id INT"}
    assert reading.read(local_spark, both).dtypes == [("id", "int"), ("x", "double"), ("y", "string")]
    more = of(path, "csv", "schemas", "malformed", header="true") | {"schema": "x DOUBLE, id INT, none DATE"}
    assert [row["none"] for row in rows(local_spark, more, "x", "y")] == [None, None]
    assert found(local_spark, more)[0].startswith("Column 'y'")
    broken = of(path, "csv", header="true") | {"schema": "id BIGGINT"}
    error = refused(local_spark, broken)
    assert (error.code, "BIGGINT" in error.message) == ("SDDP-101", True)


def test_names_that_differ_by_case_only_are_told_as_such(local_spark: Any, folder: Path) -> None:
    error = refused(local_spark, of(write(folder, {"a.json": '{"A": 1, "a": 2}\n'}), "json"))
    assert error.code == "SDDP-204"
    assert "COLUMN_ALREADY_EXISTS" in error.message


def test_folders_columns_are_no_values_of_a_line(local_spark: Any, folder: Path) -> None:
    source = of(write(folder, {"day=3/a.csv": "id,x\n1,2\n2\n"}), "csv", "malformed", **CSV)
    assert "(1 values for 2 columns)" in found(local_spark, source)[0]
    assert rows(local_spark, source) == [{"id": 1, "x": 2, "day": 3}]


def test_a_value_that_does_not_fit_its_column_is_named(local_spark: Any, folder: Path) -> None:
    """Spark infers a type from the sampled lines alone; the rest may hold something else."""
    lines = "".join(f"{i},{i}\n" for i in range(2000))
    path = write(folder, {"a.csv": f"id,x\n{lines}77,abc\n"})
    source = of(path, "csv", **CSV, samplingRatio="0.01")
    assert reading.read(local_spark, source).dtypes == [("id", "int"), ("x", "int")]
    error = refused(local_spark, source)
    assert error.code == "SDDP-212"
    assert "Malformed lines found: 1." in error.message
    assert "first '77,abc' (column 'x')" in error.message


def test_a_long_bad_line_is_shortened(local_spark: Any, folder: Path) -> None:
    source = of(write(folder, {"a.csv": "id,x\n1,2\n" + "9" * 5000 + "\n"}), "csv", **CSV)
    error = refused(local_spark, source)
    assert f"'{'9' * 200}…'" in error.message


def test_who_sets_a_mode_decides_on_malformed_lines(local_spark: Any, folder: Path) -> None:
    path = write(folder, BAD_CSV)
    source = of(path, "csv", **CSV, Mode="PERMISSIVE")
    assert len(rows(local_spark, source)) == 5
    assert found(local_spark, source) == []
    named = of(path, "csv", header="true", columnNameOfCorruptRecord="_bad")
    assert len(rows(local_spark, named)) == 5


def test_bad_json_is_counted_and_can_be_tolerated(local_spark: Any, folder: Path) -> None:
    path = write(folder, {"a.json": '{"a":1}\n{"a":2\n', NAME.format("json"): '{"a":3}\n'})
    error = refused(local_spark, of(path, "json"))
    assert error.code == "SDDP-212"
    assert f"Malformed lines found: 1. 1 in file:{folder}/a.json, first '{{\"a\":2' (no JSON: " in error.message
    source = of(path, "json", "malformed")
    assert rows(local_spark, source) == [{"a": 1}, {"a": 3}]
    assert found(local_spark, source)[0].startswith("Malformed lines dropped: 1.")

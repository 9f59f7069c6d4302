"""PartitionToParquet's job on an embedded Spark: every row once, balanced, described, committed last."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.jobs import partition
from airflow_provider_sparkddp.runtime.partition import write
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import TRAIN, VALIDATION, Manifest, data_uri
from tests.support import jobs

ROWS = 10_000


@pytest.fixture(scope="module")
def table(local_spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 rows in 7 files: id, x = id / 10, day, and a flag that is true for every tenth row."""
    folder = tmp_path_factory.mktemp("source") / "table"
    frame = local_spark.range(0, ROWS, 1, 7).selectExpr(
        "id", "id / 10.0d as x", "date_add(date'2013-01-01', cast(id % 365 as int)) as day", "id % 10 = 0 as held_out"
    )
    frame.write.parquet(f"file://{folder}")
    return folder


def run(spark: Any, folder: Path, source: dict[str, Any], **settings: Any) -> tuple[Manifest, str, dict[str, Any]]:
    job = jobs.job("partition", folder, source=source, **settings)
    outcome = partition.run(spark, job, jobs.wanted)
    uri = outcome.values["manifest"]
    return Manifest.from_text(storage.read_text(uri), uri), uri, outcome.values


def of_table(table: Path) -> dict[str, Any]:
    return {"format": "parquet", "path": f"file://{table}"}


def ids(manifest: Manifest, uri: str, split: str) -> list[int]:
    """The ids in the split's files, read from the files that the manifest names."""
    found: list[int] = []
    for file in manifest.files:
        if file.split == split:
            path = data_uri(uri, file).removeprefix("file://")
            found += pq.ParquetFile(path).read(columns=["id"]).column(0).to_pylist()
    return found


def test_every_row_lies_in_one_split_and_the_ranks_are_balanced(local_spark: Any, table: Path, tmp_path: Path) -> None:
    manifest, uri, values = run(local_spark, tmp_path, of_table(table), num_nodes=2, devices=2, validation=0.1)
    train, held_out = ids(manifest, uri, TRAIN), ids(manifest, uri, VALIDATION)
    assert sorted(train + held_out) == list(range(ROWS))
    assert 800 < len(held_out) < 1200
    rows = manifest.rank_rows(TRAIN)
    assert len(rows) == 4
    assert max(rows) - min(rows) <= max(8, 0.01 * sum(rows) / 4)
    assert values["files"] == [f.name for f in manifest.files]
    assert values["rows"] == {TRAIN: rows, VALIDATION: manifest.rank_rows(VALIDATION)}


@pytest.mark.parametrize("small", [0, 64 << 20], ids=["by the executors", "by the driver"])
def test_the_manifest_describes_what_lies_there(
    small: int, local_spark: Any, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "SMALL", small)
    manifest, uri, _ = run(local_spark, tmp_path, of_table(table), columns=["id", "x"], seed=7)
    assert (manifest.seed, manifest.world_size) == (7, 2)
    assert [(c.name, c.type, c.minimum, c.maximum) for c in manifest.columns] == [
        ("id", "long", 0, ROWS - 1),
        ("x", "double", 0.0, (ROWS - 1) / 10),
    ]
    for file in manifest.files:
        lying = data_uri(uri, file)
        assert storage.size(lying) == file.bytes
        assert storage.sha256(lying) == file.sha256
        metadata = pq.ParquetFile(lying.removeprefix("file://")).metadata
        assert tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)) == file.row_groups


def test_the_same_row_lands_on_the_same_side_whatever_the_partitioning(
    local_spark: Any, table: Path, tmp_path: Path
) -> None:
    first, first_uri, _ = run(local_spark, tmp_path, of_table(table), validation=0.2)
    other = tmp_path / "other"
    local_spark.read.parquet(f"file://{table}").orderBy("x", ascending=False).repartition(3).write.parquet(
        f"file://{other}"
    )
    second, second_uri, _ = run(local_spark, tmp_path, of_table(other), validation=0.2, num_nodes=3)
    assert sorted(ids(first, first_uri, VALIDATION)) == sorted(ids(second, second_uri, VALIDATION))


def test_validation_after_a_value_takes_what_is_greater(local_spark: Any, table: Path, tmp_path: Path) -> None:
    after = {"after": {"column": "day", "value": "2013-12-01"}}
    manifest, uri, _ = run(local_spark, tmp_path, of_table(table), validation=after)
    # 2013-12-01 is day 334 of the year, counted from 0.
    assert sorted(ids(manifest, uri, VALIDATION)) == [i for i in range(ROWS) if i % 365 > 334]


def test_validation_by_column_leaves_the_column_out(local_spark: Any, table: Path, tmp_path: Path) -> None:
    manifest, uri, _ = run(local_spark, tmp_path, of_table(table), validation={"column": "held_out"})
    assert sorted(ids(manifest, uri, VALIDATION)) == list(range(0, ROWS, 10))
    assert manifest.column("held_out") is None


def test_a_table_sql_and_a_function_are_sources(local_spark: Any, table: Path, tmp_path: Path) -> None:
    local_spark.read.parquet(f"file://{table}").createOrReplaceTempView("flights_seen")
    sources = [
        {"table": "flights_seen"},
        {"sql": "SELECT * FROM flights_seen WHERE id < 10000"},
        {"callable": "tests.spark.test_partition:rows_of", "kwargs": {"path": f"file://{table}"}},
    ]
    for source in sources:
        manifest, uri, _ = run(local_spark, tmp_path, source)
        assert sorted(ids(manifest, uri, TRAIN)) == list(range(ROWS))


def rows_of(spark: Any, path: str) -> Any:
    return spark.read.parquet(path)


def rows_of_nothing(spark: Any) -> list[int]:
    return [1, 2]


def test_timestamps_are_utc_microseconds_whatever_the_zone(local_spark: Any, tmp_path: Path) -> None:
    local_spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        local_spark.sql(
            "SELECT timestamp'2013-06-01 23:30:00.123456' AS at, 1 AS n UNION ALL SELECT timestamp'1000-01-01 00:00:00', 2"
        ).write.parquet(f"file://{tmp_path}/source")
        manifest, uri, _ = run(local_spark, tmp_path, of_table(tmp_path / "source"))
        found = {}
        for file in manifest.files:
            parquet = pq.ParquetFile(data_uri(uri, file).removeprefix("file://"))
            assert parquet.schema_arrow.field("at").type == pa.timestamp("us", tz="UTC")
            found |= {row["n"]: row["at"] for row in parquet.read().to_pylist()}
    finally:
        local_spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert found[1] == dt.datetime(2013, 6, 2, 3, 30, 0, 123456, tzinfo=dt.UTC)
    assert found[2].year == 1000


def test_csv_options_are_spark_s(local_spark: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id;x\n" + "".join(f"{i};{i / 2}\n" for i in range(20)))
    source = {
        "format": "csv",
        "path": f"file://{tmp_path}/rows.csv",
        "options": {"sep": ";", "header": "true", "inferSchema": "true"},
    }
    manifest, uri, _ = run(local_spark, tmp_path, source)
    assert sorted(ids(manifest, uri, TRAIN)) == list(range(20))
    assert [c.type for c in manifest.columns] == ["int", "double"]


def test_names_with_spaces_and_unicode_work(local_spark: Any, tmp_path: Path) -> None:
    local_spark.range(10).selectExpr("id", "id AS `länge in km`").write.parquet(f"file://{tmp_path}/source")
    manifest, _, _ = run(local_spark, tmp_path, of_table(tmp_path / "source"), validation=None)
    assert [c.name for c in manifest.columns] == ["id", "länge in km"]


REFUSED = {
    "an empty source": ("SELECT 1 AS a WHERE false", {}, "SDDP-201", "gave no rows"),
    "fewer rows than ranks": ("SELECT * FROM range(3)", {"num_nodes": 4}, "SDDP-202", "3 rows for 4 ranks"),
    "fewer validation rows than ranks": (
        "SELECT id, id = 0 AS v FROM range(50)",
        {"num_nodes": 2, "validation": {"column": "v"}},
        "SDDP-202",
        "validation split has 1 rows for 2 ranks",
    ),
    "all rows in validation": (
        "SELECT id, true AS v FROM range(9)",
        {"validation": {"column": "v"}},
        "SDDP-201",
        "all rows are held out (9 for validation)",
    ),
    "no row in validation": (
        "SELECT id, false AS v FROM range(9)",
        {"validation": {"column": "v"}},
        "SDDP-201",
        "holds out no row of 9",
    ),
    "a null that decides": (
        "SELECT id, IF(id = 3, null, id > 5) AS v FROM range(9)",
        {"validation": {"column": "v"}},
        "SDDP-206",
        "null in 1 rows",
    ),
    "a validation column that is no boolean": (
        "SELECT id FROM range(9)",
        {"validation": {"column": "id"}},
        "SDDP-205",
        "column 'id' of type bigint",
    ),
    "a type that cannot be trained on": ("SELECT map('a', 1) AS m", {}, "SDDP-205", "'m' of type map<string,int>"),
    "a missing column": ("SELECT 1 AS delay", {"columns": ["delya"]}, "SDDP-204", "'delya' is not in the source"),
    "a missing validation column": (
        "SELECT 1 AS delay",
        {"validation": {"column": "day"}},
        "SDDP-204",
        "'day' is not in the source",
    ),
    "names that differ by case only": ("SELECT 1 AS a, 2 AS A", {}, "SDDP-204", "the same name twice"),
    "a name with a dot": ("SELECT 1 AS `a.b`", {}, "SDDP-204", "'a.b'"),
    "a table that is not there": (None, {"source": {"table": "nowhere.at_all"}}, "SDDP-203", "nowhere"),
    "a path that is not there": (
        None,
        {"source": {"format": "parquet", "path": "file:///nowhere/at/all"}},
        "SDDP-203",
        "/nowhere/at/all",
    ),
    "types that cannot be trained on": (
        "SELECT map('a', 1) AS m, struct(1) AS s",
        {},
        "SDDP-205",
        "the columns 'm' of type map<string,int>, 's' of type struct<col1:int>;",
    ),
    "missing columns": (
        "SELECT 1 AS Delay",
        {"columns": ["delay", "day"], "test": None},
        "SDDP-204",
        "the columns 'delay', 'day' are not in the source; it has: Delay.",
    ),
    "SQL with a fault": ("SELECT 1 FORM x", {}, "SDDP-203", "PARSE_SYNTAX_ERROR"),
    "an error that Spark finds while it reads": (
        "SELECT cast(id AS int) / (id - 5) AS x, cast(raise_error('broken row') AS int) AS y FROM range(9)",
        {},
        "SDDP-203",
        "broken row",
    ),
    "a function that returns no frame": (
        None,
        {"source": {"callable": "tests.spark.test_partition:rows_of_nothing"}},
        "SDDP-203",
        "returned a list",
    ),
    "a function that is not there": (
        None,
        {"source": {"callable": "tests.spark.test_partition:nowhere"}},
        "SDDP-401",
        "cannot be imported",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_become_partitions_is_refused_and_nothing_is_published(
    case: str, local_spark: Any, tmp_path: Path
) -> None:
    sql, settings, code, words = REFUSED[case]
    given = {"source": {"sql": sql}, **settings} if sql else dict(settings)
    with pytest.raises(SparkDDPError) as caught:
        run(local_spark, tmp_path, given.pop("source"), **given)
    assert caught.value.code == code
    assert words in caught.value.message
    assert "\tat " not in str(caught.value)
    assert not list(tmp_path.rglob("manifest.json"))


def test_storage_that_cannot_be_written_is_named(local_spark: Any, table: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SparkDDPError) as caught:
        run(local_spark, tmp_path / "file", of_table(table))
    assert caught.value.code in ("SDDP-203", "SDDP-301")
    assert str(tmp_path) in caught.value.message

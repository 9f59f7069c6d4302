"""Executors write through pyarrow and fsspec: the same rows and the same schema as Spark's own writer, on disk and on S3."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.jobs import partition
from airflow_provider_sparkddp.runtime.partition import arrow_writer
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.storage.manifests import read_manifest
from tests.support import jobs
from tests.support.refusals import refused
from tests.support.s3 import Bucket

# Column -> expression of a value that differs from row to row; every type that partitions may hold.
TYPES = {
    "a_byte": "cast(id % 100 AS tinyint)",
    "a_short": "cast(id AS smallint)",
    "an_int": "cast(-id AS int)",
    "a_long": "id * 1000000007",
    "a_float": "cast(id / 3 AS float)",
    "a_double": "id / 3",
    "not_a_number": "CASE id % 3 WHEN 0 THEN double('NaN') WHEN 1 THEN double('-Infinity') ELSE 0d END",
    "a_boolean": "id % 2 = 0",
    "a_string": "concat('näme ', id)",
    "a_date": "date_add(date'1899-12-31', cast(id AS int))",
    "a_timestamp": "timestamp'1000-01-01 23:30:00.123456' + make_interval(0, 0, 0, cast(id AS int))",
    "a_local_time": "timestamp_ntz'2013-06-01 23:30:00.123456' + make_interval(0, 0, 0, cast(id AS int))",
    "numbers": "array(cast(id AS double), 1d)",
    "small_numbers": "array(cast(id AS float), cast(null AS float))",
    "an odd näme": "id",
}
NULLABLE = {f"{name}_or_null": f"IF(id % 4 = 0, null, {expression})" for name, expression in TYPES.items()}
SPLIT = "IF(id % 5 = 0, 'validation', 'train') AS sparkddp_split"


@pytest.fixture(scope="module")
def spark(bucket: Bucket, local_spark: Any) -> Any:
    """Python workers have the environment that Spark's JVM was started with: the bucket comes first."""
    return local_spark


@pytest.fixture(params=["file", "s3"])
def folder(request: pytest.FixtureRequest, bucket: Bucket, tmp_path: Any) -> str:
    """A place of the test's own."""
    name = re.sub(r"\W", "_", request.node.name)
    return paths.join(bucket.uri, name) if request.param == "s3" else paths.join(tmp_path.as_uri(), name)


def numbered(spark: Any, rows: int, tasks: int) -> Any:
    return spark.range(0, rows, 1, tasks).selectExpr("id", "id * 2 AS double_id", SPLIT)


def read(folder: str, name: str) -> pq.ParquetFile:
    return pq.ParquetFile(io.BytesIO(storage.read_bytes(paths.join(folder, name))))


def ids(folder: str, names: Sequence[str], split: str = "") -> list[int]:
    """The ids in the files of the split, file by file, in their order."""
    wanted = [name for name in names if split in name]
    return [value for name in wanted for value in read(folder, name).read().column("id").to_pylist()]


def test_every_row_lies_once_in_a_file_of_its_split(spark: Any, folder: str) -> None:
    names = arrow_writer.write(numbered(spark, 1000, 3), folder, ["id", "double_id"], "zstd", 1000)
    assert sorted(ids(folder, names, "sparkddp_split=train/")) == [i for i in range(1000) if i % 5]
    assert sorted(ids(folder, names, "sparkddp_split=validation/")) == list(range(0, 1000, 5))
    pattern = r"sparkddp_split=(train|validation)/part-0000[0-2]-[0-9a-f]{32}\.parquet"
    assert all(re.fullmatch(pattern, name) for name in names)
    assert names == sorted(names) == storage.files_below(folder)
    assert len({name[:-38] for name in names}) == 6  # three tasks, two splits
    found = read(folder, names[0]).read()
    assert found.column_names == ["id", "double_id"]
    assert found.column("double_id").to_pylist() == [2 * i for i in found.column("id").to_pylist()]


@pytest.mark.parametrize("large", ["false", "true"], ids=["32-bit offsets", "64-bit offsets"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_files_are_as_spark_s_own_writer_makes_them(
    spark: Any, folder: str, tmp_path: Any, zone: str, large: str
) -> None:
    settings = {
        "spark.sql.session.timeZone": zone,
        "spark.sql.execution.arrow.useLargeVarTypes": large,
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
    before = {key: spark.conf.get(key) for key in settings}
    columns = {**TYPES, **NULLABLE}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        frame = spark.range(0, 40, 1, 1).selectExpr(
            *(f"{expression} AS `{name}`" for name, expression in columns.items()), SPLIT
        )
        frame.write.partitionBy("sparkddp_split").parquet(f"file://{tmp_path}/by_spark")
        names = arrow_writer.write(frame, folder, list(columns), "zstd", 1000)
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    assert [name.split("/")[0] for name in names] == ["sparkddp_split=train", "sparkddp_split=validation"]
    for name in names:
        (by_spark,) = (tmp_path / "by_spark" / name.split("/")[0]).glob("*.parquet")
        expected, ours = pq.ParquetFile(by_spark), read(folder, name)
        assert ours.schema_arrow.equals(expected.schema_arrow.remove_metadata(), check_metadata=True)
        assert ours.schema_arrow.field("a_timestamp").type == pa.timestamp("us", tz="UTC")
        # As text: NaN is no equal of itself.
        assert str(ours.read().to_pylist()) == str(expected.read().to_pylist())


def test_spark_reads_what_was_written(spark: Any, tmp_path: Any) -> None:
    folder, columns = tmp_path.as_uri(), {**TYPES, **NULLABLE}
    frame = spark.range(0, 40, 1, 2).selectExpr(*(f"{made} AS `{name}`" for name, made in columns.items()), SPLIT)
    arrow_writer.write(frame, folder, list(columns), "snappy", 7)
    back = spark.read.parquet(folder)
    assert back.schema.simpleString() == frame.schema.simpleString()
    assert sorted(map(str, back.collect())) == sorted(map(str, frame.collect()))


@pytest.mark.parametrize("compression", ["zstd", "snappy"])
def test_row_groups_have_the_rows_asked_for_and_statistics(spark: Any, tmp_path: Any, compression: str) -> None:
    folder = tmp_path.as_uri()
    # Row groups end neither where batches do nor where files do.
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "700")
    try:
        frame = numbered(spark, 5000, 2)
        names = arrow_writer.write(frame, folder, ["id"], compression, 1500)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    groups = []
    for name in names:
        metadata = read(folder, name).metadata
        groups.append([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)])
        column = metadata.row_group(0).column(0)
        assert column.compression == compression.upper()
        assert column.statistics.has_min_max
        assert column.statistics.null_count == 0
    assert groups == [[1500, 500], [1500, 500], [500], [500]]


def test_the_order_within_a_task_is_kept(spark: Any, folder: str) -> None:
    frame = numbered(spark, 3000, 1).repartition(2, "id").sortWithinPartitions("id", ascending=False)
    names = arrow_writer.write(frame, folder, ["id"], "zstd", 100)
    assert len(names) == 4
    for name in names:
        found = ids(folder, [name])
        assert found == sorted(found, reverse=True)


def test_a_task_without_rows_writes_no_file(spark: Any, folder: str) -> None:
    names = arrow_writer.write(numbered(spark, 3, 4).where("id > 0"), folder, ["id"], "zstd", 100)
    assert sorted(ids(folder, names)) == [1, 2]
    assert len(names) == 2 == len(storage.files_below(folder))
    assert arrow_writer.write(numbered(spark, 9, 4).where("id > 9"), folder, ["id"], "zstd", 100) == []


def test_a_split_without_a_name_is_kept_under_spark_s_name_for_it(spark: Any, tmp_path: Any) -> None:
    frame = numbered(spark, 10, 1).selectExpr("id", "IF(id < 5, 'train', null) AS sparkddp_split")
    names = arrow_writer.write(frame, tmp_path.as_uri(), ["id"], "zstd", 100)
    assert ids(tmp_path.as_uri(), names, "sparkddp_split=__HIVE_DEFAULT_PARTITION__/") == [5, 6, 7, 8, 9]


def test_what_storage_refuses_an_executor_is_said_in_its_words(spark: Any, tmp_path: Any) -> None:
    (tmp_path / "file").write_text("in the way")
    for place, words in (
        ("s3://no-such-bucket/data", "bucket does not exist"),
        ((tmp_path / "file" / "data").as_uri(), "NotADirectoryError"),
    ):
        with pytest.raises(SparkDDPError) as caught:
            arrow_writer.write(numbered(spark, 10, 2), place, ["id"], "zstd", 100)
        assert caught.value.code == "SDDP-301"
        assert re.match(rf"the executor on \S+: {re.escape(place)}/", caught.value.message)
        assert words in caught.value.message
        assert "Traceback" not in str(caught.value)


def test_what_else_fails_in_spark_stays_what_it_is(spark: Any, tmp_path: Any) -> None:
    frame = spark.range(9).selectExpr("IF(id = 5, raise_error('broken row'), id) AS id", SPLIT)
    with pytest.raises(Exception, match="broken row") as caught:
        arrow_writer.write(frame, tmp_path.as_uri(), ["id"], "zstd", 100)
    assert type(caught.value).__module__.startswith("pyspark")
    assert storage.files_below(tmp_path.as_uri()) == []


@pytest.mark.parametrize("place", ["file:///shared", "hdfs://host/shared"])
@pytest.mark.parametrize("writer", ["auto", "spark"])
def test_spark_writes_where_its_jvm_can(spark: Any, place: str, writer: str) -> None:
    assert arrow_writer.choose(spark, place, writer) == "spark"
    assert arrow_writer.choose(spark, place, "arrow") == "arrow"


JARS = {
    "s3://bucket/data": "org.apache.hadoop:hadoop-aws:3.",
    "s3a://bucket/data": "org.apache.hadoop:hadoop-aws:3.",
    "gs://bucket/data": "gcs-connector",
    "abfss://box@account.dfs.core.windows.net/data": "org.apache.hadoop:hadoop-azure:3.",
    "dbfs://data/x": "FileSystem for dbfs://",
}


@pytest.mark.parametrize("place", JARS)
def test_executors_write_where_spark_s_jvm_cannot(spark: Any, place: str) -> None:
    assert arrow_writer.choose(spark, place, "auto") == arrow_writer.choose(spark, place, "arrow") == "arrow"
    with refused("SDDP-310", "writer='spark'", place, JARS[place], "writer='arrow'"):
        arrow_writer.choose(spark, place, "spark")


GROUPED = {"group_by": "series", "order_by": "id", "files_per_rank": 2}


@pytest.mark.parametrize("how", [GROUPED, {"shuffle": False}, {}], ids=["groups", "as they lie", "exchanged"])
def test_a_partition_job_comes_to_the_same_by_either_writer(spark: Any, how: dict[str, Any], tmp_path: Any) -> None:
    source = {"sql": "SELECT id, concat('s', id * id % 97) AS series, id / 3 AS x FROM range(0, 3000, 1, 3)"}
    made = {}
    for writer in ("spark", "arrow"):
        job = jobs.job("partition", tmp_path, source=source, writer=writer, validation=0.2, row_group_rows=300, **how)
        uri = partition.run(spark, job, jobs.wanted).values["manifest"]
        manifest = read_manifest(uri)
        files = [
            (f.split, f.bin, f.row_groups, read(paths.parent(uri), f.name).read().to_pylist()) for f in manifest.files
        ]
        made[writer] = (sorted(files, key=str), manifest.columns, manifest.rank_rows("train"))
    assert made["arrow"] == made["spark"]

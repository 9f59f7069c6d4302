"""Reading a real PostgreSQL through Spark: tables, queries, parts, types, and what a user is told when it goes wrong.

The hosts' time zone is New York: what is read must not depend on it.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime import secrets
from airflow_provider_sparkddp.runtime.jobs import partition
from airflow_provider_sparkddp.runtime.sources import reading
from airflow_provider_sparkddp.spec.databases import driver_of
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.spark.conftest import start_session, stop_session
from tests.support import jobs, submit
from tests.support.postgres import JAR, Postgres, missing, postgres
from tests.support.refusals import refused

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))
ROOT = Path(__file__).resolve().parents[2]
ROWS = 1000
TABLE = f"""
CREATE TABLE trips AS SELECT
    i AS id, i::numeric(10, 2) / 4 AS price, i::float8 / 8 AS distance, i % 2 = 0 AS late, 'trip ' || i AS "the Name",
    date '2013-01-01' + i / 24 AS day, timestamp '2013-01-01 02:30' + i * interval '1 hour' AS local,
    timestamptz '2013-01-01 02:30+00' + i * interval '1 hour' AS at, array[i, i + 1]::float8[] AS pair
FROM generate_series(0, {ROWS - 1}) AS i
"""


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres() as server:
        holes = "UPDATE trips SET local = NULL WHERE id = 7"
        server.run(TABLE, holes, "CREATE SCHEMA sub", "CREATE TABLE sub.few AS SELECT 1 AS a, NULL::int AS b")
        yield server


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    zone = "-Duser.timezone=America/New_York"
    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    conf = {"spark.jars": str(JAR), "spark.driver.extraJavaOptions": zone, "spark.sql.warehouse.dir": warehouse}
    made = start_session("local[2]", {**conf, "spark.log.level": "OFF"})
    yield made
    stop_session(made)


@pytest.fixture(autouse=True)
def given(database: Postgres) -> Iterator[None]:
    give(database)
    yield
    secrets.give({})


def give(database: Postgres, **other: str) -> None:
    """What Airflow's side gives to the job."""
    login = {"url": database.url, "user": database.user, "password": database.password}
    secrets.give({**login, "driver": str(driver_of(other.get("url", database.url))), **other})


def source(**keys: Any) -> dict[str, Any]:
    return {"jdbc_conn_id": "warehouse", **keys}


def in_parts(column: str, lower: Any, upper: Any, num_parts: Any = "4", **keys: Any) -> dict[str, Any]:
    bounds = {"partition_column": column, "lower_bound": lower, "upper_bound": upper, "num_partitions": num_parts}
    return source(**{"table": "trips", **keys, **bounds})


def ids(frame: Any) -> list[list[int]]:
    """The ids in each part."""
    return [sorted(row[0] for row in part) for part in frame.select("id").rdd.glom().collect()]


def test_a_table_is_read(spark: Any) -> None:
    frame = reading.read(spark, source(table="trips"))
    assert frame.rdd.getNumPartitions() == 1
    assert ids(frame) == [list(range(ROWS))]
    assert reading.read(spark, source(table="sub.few")).collect()[0].asDict() == {"a": 1, "b": None}


def test_a_query_is_read_and_its_filters_run_in_the_database(spark: Any) -> None:
    frame = reading.read(spark, source(query="SELECT id, distance FROM trips WHERE id % 10 = 0 -- every tenth\n;"))
    assert frame.columns == ["id", "distance"]
    assert ids(frame) == [list(range(0, ROWS, 10))]
    plan = frame.where("id > 500")._jdf.queryExecution().toString()
    assert "PushedFilters: [*IsNotNull(id), *GreaterThan(id,500)]" in plan


def test_types_are_what_they_are_whatever_the_zone_of_the_host(spark: Any) -> None:
    frame = reading.read(spark, source(table="trips"))
    types = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    assert types == [
        ("id", "int"),
        ("price", "decimal(38,18)"),
        ("distance", "double"),
        ("late", "boolean"),
        ("the Name", "string"),
        ("day", "date"),
        ("local", "timestamp_ntz"),
        ("at", "timestamp"),
        ("pair", "array<double>"),
    ]
    wanted = frame.where("id = 1639 % 1000").selectExpr("*", "cast(local AS string) AS l", "cast(at AS string) AS a")
    row = wanted.drop("local", "at").collect()[0].asDict()
    # 639 hours after half past two, in the zone in which it was written.
    assert row == {
        "id": 639,
        "price": Decimal("159.75"),
        "distance": 79.875,
        "late": False,
        "the Name": "trip 639",
        "day": dt.date(2013, 1, 27),
        "pair": [639.0, 640.0],
        "l": "2013-01-27 17:30:00",
        "a": "2013-01-27 17:30:00",
    }
    assert frame.where("at >= timestamp'2013-01-27 17:30:00'").count() == ROWS - 639
    assert frame.where("local >= timestamp_ntz'2013-01-27 17:30:00'").count() == ROWS - 639


@pytest.mark.parametrize(
    ("column", "lower", "upper"),
    [
        ("id", "0", "1000"),
        ("ID", 0, 1000),
        ("price", "0", "249.75"),
        ("distance", 0.0, 125.0),
        ("day", "2013-01-01", "2013-02-11"),
        ("local", "2013-01-01", "2013-02-11 18:30:00"),
        ("at", "2013-01-01T00:00:00+00:00", "2013-02-11 18:30:00"),
    ],
)
def test_parts_hold_each_row_once_and_are_about_equal(column: str, lower: Any, upper: Any, spark: Any) -> None:
    frame = reading.read(spark, in_parts(column, lower, upper))
    assert frame.rdd.getNumPartitions() == 4
    parts = ids(frame)
    assert sorted(sum(parts, [])) == list(range(ROWS))
    assert all(200 <= len(part) <= 300 for part in parts), [len(part) for part in parts]


def test_each_part_is_read_through_a_connection_of_its_own(spark: Any) -> None:
    asked = {**in_parts("id", 0, ROWS), "query": "SELECT id, pg_backend_pid() AS backend FROM trips"}
    del asked["table"]
    assert reading.read(spark, asked).select("backend").distinct().count() == 4


def test_one_part_and_rows_outside_of_the_bounds_are_read_too(spark: Any) -> None:
    assert sorted(sum(ids(reading.read(spark, in_parts("local", "2013-01-02", "2013-01-03", 1))), [])) == list(
        range(ROWS)
    )
    assert sorted(sum(ids(reading.read(spark, in_parts("local", "2013-01-02", "2013-01-03", 3))), [])) == list(
        range(ROWS)
    )
    assert sorted(sum(ids(reading.read(spark, in_parts("id", 100, 200, 3))), [])) == list(range(ROWS))


def test_rows_stream_by_the_fetch_size(spark: Any) -> None:
    """The last row is at fault, and the database has not come to it when the first ones are there."""
    asked = source(query=f"SELECT id, 1 / (id - {ROWS - 1}) AS x FROM trips", fetch_size=10)
    frame = reading.read(spark, asked)
    assert len(frame.limit(5).collect()) == 5
    with refused("SDDP-203", "division by zero"):
        failing(frame)
    at_once = reading.read(spark, {**asked, "fetch_size": 0})
    with pytest.raises(Exception, match="division by zero"):
        at_once.limit(5).collect()


def failing(frame: Any) -> None:
    """What a job does when its rows fail while they are written."""
    try:
        frame.write.format("noop").mode("overwrite").save()
    except Exception as error:
        raise reading.failed(source(query="SELECT …"), error) from error


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a missing table": (source(table="tripz"), "SDDP-203", 'ERROR: relation "tripz" does not exist'),
    "SQL with a fault": (source(query="SELEC 1"), "SDDP-203", 'ERROR: syntax error at or near "1"'),
    "a missing column": (
        source(query="SELECT prize FROM trips"),
        "SDDP-203",
        'column "trips.price". Position: 8',
    ),
    "an open parenthesis": (source(query="SELECT id FROM trips WHERE (id > 1"), "SDDP-203", "left open? Position: 34"),
    "a misspelt partition column": (in_parts("distanz", 0, 1), "SDDP-204", "it has: id, price, distance"),
    "a partition column of text": (in_parts("the Name", 0, 1), "SDDP-205", "'the Name' is of type string"),
    "a bound of another type": (in_parts("day", "0", "9"), "SDDP-101", "source['lower_bound']='0' is no date"),
    "bounds the wrong way round": (in_parts("id", "10", "9"), "SDDP-101", "is not less than upper_bound='9'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_with_the_database_s_words(case: str, spark: Any) -> None:
    asked, code, words = REFUSED[case]
    with pytest.raises(SparkDDPError) as caught:
        reading.read(spark, asked)
    require_brief(caught.value, code, words, retry=False)


def require_brief(error: SparkDDPError, code: str, words: str, retry: bool) -> None:
    assert (error.code, error.retry) == (code, retry), str(error)
    assert words in error.message
    assert "\tat " not in str(error) and "\n" not in str(error) and len(str(error)) < 600, str(error)


UNREACHABLE: dict[str, tuple[dict[str, str], str, bool]] = {
    "a wrong password": ({"password": "wrong"}, "password authentication failed", False),
    "a missing database": ({"url": "jdbc:postgresql://127.0.0.1:{port}/nowhere"}, '"nowhere" does not exist', False),
    "a closed port": ({"url": "jdbc:postgresql://127.0.0.1:1/warehouse"}, "Connection to 127.0.0.1:1 refused", True),
    "an unknown host": ({"url": "jdbc:postgresql://nowhere.invalid/x"}, "The connection attempt failed", True),
}


@pytest.mark.parametrize("case", UNREACHABLE)
def test_only_a_database_that_was_not_reached_is_tried_again(case: str, spark: Any, database: Postgres) -> None:
    other, words, retry = UNREACHABLE[case]
    give(database, **{name: value.format(port=database.port) for name, value in other.items()})
    with pytest.raises(SparkDDPError) as caught:
        reading.read(spark, source(table="trips"))
    require_brief(caught.value, "SDDP-203", words, retry)


def test_a_connection_that_breaks_while_rows_are_read_is_tried_again(spark: Any) -> None:
    broken = source(query="SELECT pg_terminate_backend(pg_backend_pid()) AS gone FROM trips")
    with pytest.raises(SparkDDPError) as caught:
        failing(reading.read(spark, broken))
    require_brief(caught.value, "SDDP-203", "terminating connection due to administrator command", retry=True)


def test_a_missing_driver_is_named_with_the_package_that_has_it(spark: Any, database: Postgres) -> None:
    give(database, url="jdbc:mysql://127.0.0.1/db")
    with refused("SDDP-310", "com.mysql.cj.jdbc.Driver", "packages='com.mysql:mysql-connector-j:", "jars="):
        reading.read(spark, source(table="t"))
    give(database, url="jdbc:made_up://h", driver="org.made.Up")
    with refused("SDDP-310", "org.made.Up", "Give the operator jars="):
        reading.read(spark, source(table="t"))


def test_a_driver_that_does_not_know_the_url_is_told(spark: Any, database: Postgres) -> None:
    give(database, url="jdbc:made_up://h", driver="org.postgresql.Driver")
    with pytest.raises(SparkDDPError) as caught:
        reading.read(spark, source(table="t"))
    require_brief(caught.value, "SDDP-203", "Check the URL", retry=False)


def test_a_database_becomes_partitions(spark: Any, tmp_path: Path) -> None:
    asked = in_parts("id", 0, ROWS, 2)
    job = jobs.job("partition", tmp_path, source=asked, columns=["id", "distance", "local"], num_nodes=2)
    outcome = partition.run(spark, job, jobs.wanted)
    assert sum(outcome.values["total_rows"].values()) == ROWS
    assert any("database warehouse, table trips" in line for line in outcome.summary)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """job.json of a job that reads the database, as an Airflow task left it."""
    job = jobs.job("partition", tmp_path, source=source(table="trips"), columns=["id"], num_nodes=1)
    (tmp_path / "job.json").write_text(job.to_text())
    return tmp_path / "job.json"


def replayed(job: Path, **variables: str) -> tuple[int, str, dict[str, Any]]:
    """Status, output, and the body of the result."""
    command = [sys.executable, "-m", "airflow_provider_sparkddp.runtime.entry.sparkddp_main", str(job)]
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {JAR} pyspark-shell", **variables}
    ran = subprocess.run(
        [*command, "--master", "local[2]"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    [result] = job.parent.rglob("replay-*/result.json")
    return ran.returncode, ran.stdout + ran.stderr, json.loads(result.read_text())["body"]


def test_a_replay_reads_what_its_environment_names(stored: Path, database: Postgres) -> None:
    login = {"SPARKDDP_JDBC_USER": database.user, "SPARKDDP_JDBC_PASSWORD": database.password}
    status, told, body = replayed(stored, SPARKDDP_JDBC_URL=database.url, **login)
    assert status == 0, told
    assert body["values"]["total_rows"] == {"train": ROWS}
    assert database.password not in told


def test_a_submitted_job_gets_its_secrets_and_tells_none(
    tmp_path: Path, database: Postgres, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The database's own words hold the password here: the query asks for it."""
    for name, value in submit.connection("local[2]").items():
        monkeypatch.setenv(name, value)
    query = "SELECT id, ('x' || current_setting('planted.word'))::int AS x FROM trips"
    database.run(f"ALTER ROLE {database.user} SET planted.word = '{database.password}'")
    job = jobs.job("partition", tmp_path, source=source(query=query), num_nodes=1)
    login = {"url": database.url, "user": database.user, "password": database.password}
    try:
        with refused("SDDP-203", 'invalid input syntax for type integer: "x***"'):
            submit.submit(job, "local[2]", {"spark.ui.enabled": "false", "spark.jars": str(JAR)}, secrets=login)
    finally:
        database.run(f"ALTER ROLE {database.user} RESET planted.word")
    assert [path for path in tmp_path.rglob("*.json") if "x***" in path.read_text()]
    assert not [path for path in tmp_path.rglob("*.json") if database.password in path.read_text()]

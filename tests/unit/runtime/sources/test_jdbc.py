"""From a source to Spark's options, without Spark: tests/spark/test_jdbc.py reads a real database by them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime import secrets
from airflow_provider_sparkddp.runtime.sources import jdbc, reading
from tests.support.refusals import refused

TABLE = {"jdbc_conn_id": "db", "table": "flights"}


@pytest.fixture(autouse=True)
def given() -> Iterator[None]:
    secrets.give({"url": "jdbc:postgresql://h/db", "user": "me", "password": "hunter2", "driver": "org.made.Up"})
    yield
    secrets.give({})


def test_a_table_is_read_by_what_was_given() -> None:
    assert jdbc.jdbc_options(TABLE) == {
        "url": "jdbc:postgresql://h/db",
        "dbtable": "flights",
        "user": "me",
        "password": "hunter2",
        "driver": "org.made.Up",
        "fetchsize": "10000",
        "preferTimestampNTZ": "true",
    }


def test_a_query_becomes_a_subquery_even_with_a_comment_at_its_end() -> None:
    source = {"jdbc_conn_id": "db", "query": " SELECT 1 -- one;\n;", "fetch_size": "50"}
    options = jdbc.jdbc_options(source)
    assert options["dbtable"] == "(SELECT 1 -- one;\n\n) sparkddp_source"
    assert options["fetchsize"] == "50"


def test_all_rows_at_once_is_a_fetch_size_too() -> None:
    assert jdbc.jdbc_options({**TABLE, "fetch_size": 0})["fetchsize"] == "0"


def test_a_driver_class_that_nobody_names_follows_from_the_url() -> None:
    secrets.give({"url": "jdbc:mysql://h/db"})
    options = jdbc.jdbc_options(TABLE)
    assert options["driver"] == "com.mysql.cj.jdbc.Driver"
    assert options["useCursorFetch"] == "true"
    assert "user" not in options and "password" not in options


def test_a_replay_without_the_connection_is_told_what_to_set() -> None:
    secrets.give({})
    with refused("SDDP-112", "'db'", "SPARKDDP_JDBC_URL", "SPARKDDP_JDBC_USER", "SPARKDDP_JDBC_PASSWORD"):
        reading.read(None, TABLE)


def test_a_person_reads_the_connection_s_name_and_what_is_read() -> None:
    assert reading.describe(TABLE) == "database db, table flights"
    query = {"jdbc_conn_id": "db", "query": "SELECT a\n  FROM b " + "x" * 200}
    assert reading.describe(query).startswith("database db, query SELECT a FROM b xxx")
    assert len(reading.describe(query)) < 150


BOUNDS: list[tuple[str, str, Any, Any]] = [
    ("lower_bound", "number", "0", 0),
    ("lower_bound", "number", 2.5, 2),
    ("upper_bound", "number", "2.5", 3),
    ("upper_bound", "number", "1e6", 1_000_000),
    ("lower_bound", "number", " -7 ", -7),
    ("lower_bound", "date", "2013-01-01", dt.date(2013, 1, 1)),
    ("lower_bound", "date", "2013-01-01T23:00:00+00:00", dt.date(2013, 1, 1)),
    ("lower_bound", "timestamp", "2013-01-01", dt.datetime(2013, 1, 1)),
    ("lower_bound", "timestamp", "2013-01-01 12:30:00.5", dt.datetime(2013, 1, 1, 12, 30, 0, 500_000)),
    ("lower_bound", "timestamp_ntz", "2013-01-01T12:00:00+02:00", dt.datetime(2013, 1, 1, 10)),
]


@pytest.mark.parametrize(("key", "kind", "value", "bound"), BOUNDS)
def test_bounds_are_read_as_the_column_s_type(key: str, kind: str, value: Any, bound: Any) -> None:
    assert jdbc._bound(key, value, kind) == bound


@pytest.mark.parametrize(
    ("kind", "value"),
    [("number", "2013-01-01"), ("number", "nan"), ("number", "inf"), ("date", "0"), ("timestamp", "now"), ("date", "")],
)
def test_a_bound_of_another_type_is_refused(kind: str, value: str) -> None:
    with refused("SDDP-101", f"source['lower_bound']={value!r} is no {kind}"):
        jdbc._bound("lower_bound", value, kind)


def test_an_error_that_is_not_the_database_s_is_left_to_others() -> None:
    assert jdbc.fault(TABLE, RuntimeError("something else")) is None
    assert reading.failed(TABLE, RuntimeError("something else")).message.startswith("database db, table flights: ")

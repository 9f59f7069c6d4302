"""A connection becomes a URL without secrets, and the secrets beside it; what can't is refused without showing them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_sparkddp.hooks.jdbc import jdbc_secrets
from airflow_provider_sparkddp.operators import PartitionToParquetOperator
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support.refusals import refused

PASSWORD = "hunter2"


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Defines the connection `db`."""

    def define(**parts: Any) -> None:
        monkeypatch.setenv("AIRFLOW_CONN_DB", json.dumps({"login": "me", "password": PASSWORD, **parts}))

    return define


PG, MS = {"conn_type": "postgres", "host": "h"}, {"conn_type": "mssql", "host": "h"}
ORACLE, JDBC = {"conn_type": "oracle", "host": "h"}, {"conn_type": "jdbc"}
URLS: dict[str, tuple[dict[str, Any], str]] = {
    "postgres": ({**PG, "port": 5432, "schema": "flights"}, "jdbc:postgresql://h:5432/flights"),
    "postgres without port and schema": (PG, "jdbc:postgresql://h/"),
    "a schema that must be encoded": ({**PG, "schema": "a b/c?d=e&f"}, "jdbc:postgresql://h/a%20b%2Fc%3Fd%3De%26f"),
    "IPv6": ({**PG, "host": "::1", "port": 5432}, "jdbc:postgresql://[::1]:5432/"),
    "several hosts": ({**PG, "host": "a:1,b:2"}, "jdbc:postgresql://a:1,b:2/"),
    "encryption": (
        {**PG, "extra": {"sslmode": "verify-full", "sslrootcert": "/certs/root & co.crt", "cursor": "dictcursor"}},
        "jdbc:postgresql://h/?sslmode=verify-full&sslrootcert=%2Fcerts%2Froot+%26+co.crt",
    ),
    "mysql": ({"conn_type": "mysql", "host": "h", "port": 3306, "schema": "a/b"}, "jdbc:mysql://h:3306/a%2Fb"),
    "mssql": ({**MS, "port": 1433, "schema": "a;b}c"}, "jdbc:sqlserver://h:1433;databaseName={a;b}}c}"),
    "mssql, an instance": ({**MS, "host": "h\\one"}, "jdbc:sqlserver://h\\one"),
    "mssql, encryption": (
        {**MS, "extra": {"encrypt": True, "trustServerCertificate": False}},
        "jdbc:sqlserver://h;encrypt={true};trustServerCertificate={false}",
    ),
    "oracle by schema": ({**ORACLE, "port": 1521, "schema": "ORCL"}, "jdbc:oracle:thin:@//h:1521/ORCL"),
    "oracle by service": ({**ORACLE, "schema": "X", "extra": {"service_name": "s.x"}}, "jdbc:oracle:thin:@//h/s.x"),
    "oracle by sid": ({**ORACLE, "extra": {"sid": "XE"}}, "jdbc:oracle:thin:@h:1521:XE"),
    "jdbc": ({**JDBC, "host": "jdbc:db2://h:50000/db"}, "jdbc:db2://h:50000/db"),
    "any with jdbc_url": (
        {"conn_type": "generic", "host": "other", "extra": {"jdbc_url": "jdbc:postgresql://h/db?ssl=true"}},
        "jdbc:postgresql://h/db?ssl=true",
    ),
    "jdbc_url comes first": ({**PG, "extra": {"jdbc_url": "jdbc:mysql://h/db"}}, "jdbc:mysql://h/db"),
    "an Oracle wallet": ({**JDBC, "host": "jdbc:oracle:thin:/@service"}, "jdbc:oracle:thin:/@service"),
}


@pytest.mark.parametrize("case", URLS)
def test_the_url_is_made_of_the_parts_and_holds_no_password(case: str, connection: Any) -> None:
    parts, url = URLS[case]
    connection(**parts)
    found = jdbc_secrets("db")
    assert found["url"] == url
    assert (found["user"], found["password"]) == ("me", PASSWORD)
    assert PASSWORD not in found["url"]
    assert found["driver"]


def test_the_connection_s_own_driver_class_is_taken(connection: Any) -> None:
    connection(**JDBC, host="jdbc:made_up:x", extra={"driver_class": "org.made.Up", "driver_path": "/jars/up.jar"})
    assert jdbc_secrets("db")["driver"] == "org.made.Up"
    connection(**PG, extra={"extra__jdbc__drv_clsname": "org.made.Up"})
    assert jdbc_secrets("db")["driver"] == "org.made.Up"
    connection(**PG)
    assert jdbc_secrets("db")["driver"] == "org.postgresql.Driver"


def test_what_the_connection_does_not_tell_is_left_out(connection: Any) -> None:
    connection(**PG, login=None, password="")
    assert set(jdbc_secrets("db")) == {"url", "driver"}


def test_a_connection_given_as_a_uri_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DB", "postgresql://me:p%40ss%2Fword@h:5432/flights?sslmode=require")
    found = jdbc_secrets("db")
    assert found["password"] == "p@ss/word"
    assert found["url"] == "jdbc:postgresql://h:5432/flights?sslmode=require"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no host": ({"conn_type": "postgres"}, "has no host"),
    "an unknown type": ({"conn_type": "sqlite", "host": "h"}, "of type 'sqlite', for which no URL is known"),
    "jdbc without a URL": (JDBC, "has no host"),
    "jdbc with a mere host": ({**JDBC, "host": "h"}, "has no JDBC URL in its host"),
    "a jdbc_url that is none": ({**PG, "extra": {"jdbc_url": f"postgresql://me:{PASSWORD}@h"}}, "in its jdbc_url"),
    "a URL as host": ({**PG, "host": f"jdbc:postgresql://me:{PASSWORD}@h/db"}, "more than the name of a host"),
    "parameters in the host": ({**MS, "host": f"h;password={PASSWORD}"}, "more than the name of a host"),
    "a password in the URL": ({**JDBC, "host": f"jdbc:postgresql://h/db?user=me&password={PASSWORD}"}, "'password'"),
    "an encoded password": ({**JDBC, "host": f"jdbc:postgresql://h/db?pass%77ord={PASSWORD}"}, "'password'"),
    "PWD": ({**JDBC, "host": f"jdbc:databricks://h:443;UID=token;PWD={PASSWORD}"}, "'PWD'"),
    "a password of a key": ({**JDBC, "host": f"jdbc:sqlserver://h;keyStoreSecret={PASSWORD}"}, "'keyStoreSecret'"),
    "before the host": ({**JDBC, "host": f"jdbc:mysql://me:{PASSWORD}@h/db"}, "before the host"),
    "Oracle's": ({**JDBC, "host": f"jdbc:oracle:thin:scott/{PASSWORD}@h:1521:XE"}, "before the host"),
    "a password in the extra": ({**PG, "extra": {"sslpassword": PASSWORD}}, "can't be translated"),
    "a token in the extra": ({**PG, "extra": {"session": {"token": PASSWORD}}}, "'token'"),
    "encryption that JDBC names otherwise": ({"conn_type": "mysql", "host": "h", "extra": {"ssl": {}}}, "'ssl'"),
    "Oracle without a database": (ORACLE, "names no database"),
    "Oracle with odd names": ({**ORACLE, "schema": "a/b@c"}, "names no database"),
    "MariaDB": ({**JDBC, "host": "jdbc:mariadb://h/db"}, "permitMysqlScheme"),
    "an unknown kind": ({**JDBC, "host": "jdbc:made_up:x"}, "Set driver_class"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused_without_its_password(case: str, connection: Any) -> None:
    parts, words = REFUSED[case]
    connection(**parts)
    with pytest.raises(SparkDDPError, match="SDDP-112.*jdbc_conn_id='db'") as caught:
        jdbc_secrets("db")
    assert words in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_a_connection_that_is_not_there_is_refused() -> None:
    with refused("SDDP-112", "jdbc_conn_id='nowhere' is not defined", "airflow connections add nowhere"):
        jdbc_secrets("nowhere")


def test_the_operator_asks_for_the_connection_when_it_runs_and_not_before(connection: Any) -> None:
    source = {"jdbc_conn_id": "db", "table": "flights"}
    operator = PartitionToParquetOperator(task_id="partition", source=source)
    connection(**PG)
    assert operator.secrets({"source": source})["password"] == PASSWORD
    assert operator.secrets({"source": {"table": "flights"}}) == {}
    assert PASSWORD not in repr(vars(operator))

"""What a JDBC URL tells of its database."""

from __future__ import annotations

import pytest

from airflow_provider_sparkddp.spec.databases import DATABASES, driver_of, kind_of

KINDS = {
    "jdbc:postgresql://host:5432/db": "postgresql",
    "JDBC:PostgreSQL://host/db": "postgresql",
    "jdbc:oracle:thin:@//host:1521/service": "oracle",
    "jdbc:sqlserver://host;databaseName=db": "sqlserver",
    "jdbc:made_up:whatever": "made_up",
    "postgresql://host/db": "",
    "jdbc": "",
    "": "",
}


@pytest.mark.parametrize("url", KINDS)
def test_the_kind_stands_after_jdbc(url: str) -> None:
    assert kind_of(url) == KINDS[url]


def test_a_known_kind_has_a_driver_and_another_none() -> None:
    assert driver_of("jdbc:mysql://host/db") == "com.mysql.cj.jdbc.Driver"
    assert driver_of("jdbc:made_up:whatever") is None


@pytest.mark.parametrize("kind", DATABASES)
def test_packages_are_maven_s_coordinates(kind: str) -> None:
    assert [bool(part) for part in DATABASES[kind].package.split(":")] == [True, True, True]

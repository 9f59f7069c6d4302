"""Databases by the kind that their JDBC URL names: the driver's class, and the package that brings it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Database:
    """driver: the class of its JDBC driver. package: Maven coordinates of a version that has it."""

    driver: str
    package: str


DATABASES: dict[str, Database] = {
    "postgresql": Database("org.postgresql.Driver", "org.postgresql:postgresql:42.7.4"),
    "mysql": Database("com.mysql.cj.jdbc.Driver", "com.mysql:mysql-connector-j:9.1.0"),
    "sqlserver": Database(
        "com.microsoft.sqlserver.jdbc.SQLServerDriver", "com.microsoft.sqlserver:mssql-jdbc:12.8.1.jre11"
    ),
    "oracle": Database("oracle.jdbc.OracleDriver", "com.oracle.database.jdbc:ojdbc11:23.6.0.24.10"),
    "db2": Database("com.ibm.db2.jcc.DB2Driver", "com.ibm.db2:jcc:11.5.9.0"),
}


def kind_of(url: str) -> str:
    """`postgresql` of `jdbc:postgresql://…`; empty for what is no JDBC URL."""
    scheme, _, rest = url.partition(":")
    return rest.partition(":")[0].lower() if scheme.lower() == "jdbc" else ""


def driver_of(url: str) -> str | None:
    """The driver's class, where the URL tells it."""
    known = DATABASES.get(kind_of(url))
    return known.driver if known else None

"""A table or a query of a database, through Spark's JDBC source. URL, user and password never stand in the job: they were given."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from airflow_provider_sparkddp.runtime import secrets
from airflow_provider_sparkddp.spec.arguments import convert
from airflow_provider_sparkddp.spec.checks.source import jdbc_bounds
from airflow_provider_sparkddp.spec.columns import require_present
from airflow_provider_sparkddp.spec.databases import DATABASES, driver_of, kind_of
from airflow_provider_sparkddp.spec.errors import SparkDDPError

# Rows that a driver takes from the database at a time. Without a number PostgreSQL's driver would take all of them at once.
FETCH_SIZE = 10_000
# By the class of its SQLSTATE: no connection, no resources, rolled back, stopped by an operator.
_PASSING = ("08", "53", "40", "57")
_NOT_SQL = object()
# Spark asks for the schema of a query as that of a subquery; a database counts the signs of the whole.
_BEFORE_QUERY = "SELECT * FROM ("
_POSITION = re.compile(r"\s*\bPosition: (\d+)")
_ALIAS = "sparkddp_source"


def read(spark: Any, source: Mapping[str, Any]) -> Any:
    """The table or query as a DataFrame (lazy, but for its schema), in `num_partitions` parts by its partition column.

    Raises:
        SparkDDPError: SDDP-112 in a replay that was given no URL; SDDP-101, 204, 205 for the partition column and its bounds.
    """
    options = jdbc_options(source)
    frame = spark.read.format("jdbc").options(**options).load()
    if source.get("partition_column") is None:
        return frame
    return _in_parts(spark, source, options, frame.schema)


def jdbc_options(source: Mapping[str, Any]) -> dict[str, str]:
    """Spark's options, without those of a partitioned read. Raises SparkDDPError SDDP-112."""
    url = secrets.given("url")
    if not url:
        raise SparkDDPError(
            "SDDP-112",
            f"this replay does not have the Airflow connection {source['jdbc_conn_id']!r}.",
            f"Set {secrets.REPLAYED['url']}, {secrets.REPLAYED['user']} and {secrets.REPLAYED['password']} in its environment.",
        )
    # Always as a subquery: Spark refuses its own option `query` together with a partition column.
    # On a line of its own, in case the query ends with a comment.
    table = f"({source['query'].strip().rstrip(';')}\n) {_ALIAS}" if "query" in source else source["table"]
    fetch_size = source.get("fetch_size")
    options = {
        "url": url,
        "dbtable": table,
        "user": secrets.given("user"),
        "password": secrets.given("password"),
        "driver": secrets.given("driver") or driver_of(url),
        "fetchsize": str(FETCH_SIZE if fetch_size is None else convert("source['fetch_size']", fetch_size, "int")),
        # A timestamp without a zone is what stands there; otherwise it would be taken for the local time of the host.
        "preferTimestampNTZ": "true",
        # MySQL's driver heeds the fetch size only so.
        "useCursorFetch": "true" if kind_of(url) == "mysql" else None,
    }
    return {name: value for name, value in options.items() if value}


def describe(source: Mapping[str, Any]) -> str:
    what = f"table {source['table']}" if "table" in source else f"query {' '.join(source['query'].split())[:120]}"
    return f"database {source['jdbc_conn_id']}, {what}"


def _in_parts(spark: Any, source: Mapping[str, Any], options: Mapping[str, str], schema: Any) -> Any:
    name, kind = _partition_column(str(source["partition_column"]), schema)
    lower, upper = (_bound(key, source[key], kind) for key in ("lower_bound", "upper_bound"))
    if not lower < upper:
        raise jdbc_bounds(source["lower_bound"], source["upper_bound"])
    num_parts = convert("source['num_partitions']", source["num_partitions"], "int")
    if kind == "timestamp_ntz":
        # Spark parts by timestamps with a zone only.
        return _by_timestamp(spark, name, lower, upper, num_parts, options)
    bounds = {"lowerBound": str(lower), "upperBound": str(upper), "numPartitions": str(num_parts)}
    return spark.read.format("jdbc").options(**options, partitionColumn=name, **bounds).load()


def _partition_column(name: str, schema: Any) -> tuple[str, str]:
    """The column's own name and its type: number, date, timestamp or timestamp_ntz. Raises SparkDDPError SDDP-204, SDDP-205."""
    fields = {field.name: field for field in schema.fields}
    matching = [each for each in fields if each == name] or [each for each in fields if each.lower() == name.lower()]
    if not matching:
        require_present([name], list(fields), "the source", "source['partition_column']")
    kind = fields[matching[0]].dataType.typeName()
    if kind in ("date", "timestamp", "timestamp_ntz"):
        return matching[0], kind
    if kind not in ("byte", "short", "integer", "long", "float", "double", "decimal"):
        raise SparkDDPError(
            "SDDP-205",
            f"partition_column={name!r} is of type {kind}.",
            "Give a column of numbers, dates or timestamps, best one with an index.",
        )
    return matching[0], "number"


def _bound(key: str, value: Any, kind: str) -> Any:
    """The bound as an int, a date, or a datetime in UTC without its zone. Raises SparkDDPError SDDP-101."""
    text = str(value).strip()
    try:
        if kind == "number":
            return (math.floor if key == "lower_bound" else math.ceil)(Decimal(text))
        at = datetime.fromisoformat(text)
    except (ValueError, OverflowError, InvalidOperation) as error:
        raise SparkDDPError(
            "SDDP-101",
            f"source[{key!r}]={value!r} is no {kind.partition('_')[0]}, as the partition column is.",
            "Write a number such as 0, a date such as 2013-01-01, or a timestamp such as 2013-01-01 12:00:00.",
        ) from error
    at = at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
    return date(at.year, at.month, at.day) if kind == "date" else at


def _by_timestamp(
    spark: Any, name: str, lower: datetime, upper: datetime, num_parts: int, options: Mapping[str, str]
) -> Any:
    """One part for each interval; the first and the last are open, and the first has the nulls."""
    jvm, properties = spark._jvm, dict(options)
    url, table = properties.pop("url"), properties.pop("dbtable")
    dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(url)
    column = dialect.quoteIdentifier(name)
    cuts = [lower + (upper - lower) * part / num_parts for part in range(1, num_parts)]
    texts = [dialect.compileValue(jvm.java.sql.Timestamp.valueOf(cut.isoformat(" ", "microseconds"))) for cut in cuts]
    starts = ["", *(f"{column} >= {text}" for text in texts)]
    ends = [*(f"{column} < {text}" for text in texts), ""]
    parts = [" AND ".join(filter(None, pair)) for pair in zip(starts, ends, strict=True)]
    parts[0] = f"{parts[0]} OR {column} IS NULL" if texts else "1 = 1"
    return spark.read.jdbc(url, table, predicates=parts, properties=properties)


def fault(source: Mapping[str, Any], error: Exception) -> SparkDDPError | None:
    """What the database or its driver said, without Spark's and Java's words around it; None when it wasn't them.

    SDDP-310 when there is no driver. SDDP-203 else, which Airflow may retry when the database was not to be reached.
    """
    for java in _causes(error):
        name, words = str(java.getClass().getName()), " ".join(str(java.getMessage()).split())
        if "No suitable driver" in words or "not find registered driver" in words or _is_driver(name, words):
            return _no_driver(source)
        state = _sql_state(java)
        if state is not _NOT_SQL:
            return _refusal(source, words, passing=str(state)[:2] in _PASSING or "Recoverable" in name)
        if "Check the URL" in words:
            # The driver doesn't know this kind of URL.
            return _refusal(source, words, passing=False)
    return None


def _causes(error: Exception) -> Iterator[Any]:
    """Java's exceptions behind Python's, the outermost first."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None:
        yield java
        java = java.getCause()


def _is_driver(exception: str, words: str) -> bool:
    wanted = secrets.given("driver") or driver_of(secrets.given("url") or "")
    return exception == "java.lang.ClassNotFoundException" and words == wanted


def _sql_state(java: Any) -> Any:
    from py4j.protocol import Py4JError

    try:
        return java.getSQLState()
    except Py4JError:
        return _NOT_SQL


def _refusal(source: Mapping[str, Any], words: str, passing: bool) -> SparkDDPError:
    words = _in_their_text(source, words)
    remedy = (
        "Check host and port of the connection, and whether the database runs and can be reached from Spark's hosts; "
        "Airflow's retries apply."
        if passing
        else "The words are the database's own: mend the table, query or connection that they name."
    )
    return SparkDDPError("SDDP-203", f"{describe(source)}: {words[:1000]}", remedy, {"retry": passing})


def _in_their_text(source: Mapping[str, Any], words: str) -> str:
    """The database counts in the text that Spark made around a table or query: only that of a query is the user's own."""
    if "query" not in source:
        return _POSITION.sub("", words).strip()
    words = words.replace(f'at or near "{_ALIAS}"', "at its end: is a parenthesis or a quote left open?")
    end = len(source["query"].strip().rstrip(";"))
    return _POSITION.sub(lambda found: f" Position: {min(max(1, int(found[1]) - len(_BEFORE_QUERY)), end)}", words)


def _no_driver(source: Mapping[str, Any]) -> SparkDDPError:
    url = secrets.given("url") or ""
    known = DATABASES.get(kind_of(url))
    package = f"packages='{known.package}' (fetched from Maven) or " if known else ""
    return SparkDDPError(
        "SDDP-310",
        f"{describe(source)}: the driver class {secrets.given('driver') or driver_of(url)!r} is in none of Spark's jars.",
        f"Give the operator {package}jars='/path/of/the/driver.jar'.",
    )

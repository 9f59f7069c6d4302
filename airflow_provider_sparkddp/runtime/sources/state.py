"""The state of a source, as far as Spark can tell it: files by size and time, versioned tables by their version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_sparkddp.spec.errors import SparkDDPError

# Formats whose reader lists files: no file is then a state too, and not "can't be told".
OF_FILES = ("parquet", "csv", "json", "orc", "text", "avro")
REMEDY = "Give fingerprint=… a text that changes when the rows do (a version, a date, a count), or leave reuse out."


def source_state(spark: Any, source: Mapping[str, Any], frame: Any) -> dict[str, Any]:
    """Plain data that changes when the source's rows do.

    Raises:
        SparkDDPError: SDDP-101 for a source whose rows may change without a sign: a view, SQL, a function, a database.
    """
    kind = next((kind for kind in ("jdbc_conn_id", "sql", "callable") if kind in source), None)
    if kind:
        raise unknowable(f"source[{kind!r}]")
    format_ = str(source["format"]).lower() if "path" in source else _provider(spark, source["table"])
    if format_ in VERSIONS:
        return {format_: VERSIONS[format_](spark, source)}
    names = sorted(set(frame.inputFiles()))
    if not names and format_ not in OF_FILES:
        raise unknowable(f"source {dict(source)!r} (its {format_ or 'reader'} names no files)")
    return {"files": _files(spark, names)}


def unknowable(what: str) -> SparkDDPError:
    return SparkDDPError("SDDP-101", f"reuse=True, and Spark can't tell whether the rows of {what} changed.", REMEDY)


def _provider(spark: Any, table: str) -> str:
    """The format of a catalog's table. Raises SparkDDPError SDDP-101 for a view, whose query may give other rows each time."""
    if spark.catalog.getTable(table).tableType in ("VIEW", "TEMPORARY"):
        raise unknowable(f"the view {table}")
    facts = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()}
    return str(facts.get("Provider", "")).lower()


def _delta(spark: Any, source: Mapping[str, Any]) -> str:
    table = source.get("table") or f"delta.`{source['path']}`"
    return str(spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]["version"])


def _iceberg(spark: Any, source: Mapping[str, Any]) -> list[str]:
    """Of the history and not of the snapshots: after a rollback the newest snapshot is not the current one."""
    table = source.get("table")
    history = (
        spark.table(f"{table}.history") if table else spark.read.format("iceberg").load(f"{source['path']}#history")
    )
    newest = history.orderBy("made_current_at", ascending=False).limit(1).collect()
    return [f"{row['snapshot_id']} {row['made_current_at']}" for row in newest]


# Not run by any test: neither has its jars in pip's Spark.
VERSIONS = {"delta": _delta, "iceberg": _iceberg}


def _files(spark: Any, names: Sequence[str]) -> list[list[Any]]:
    """[name, bytes, time of modification in ms] of each file, through Hadoop: where Spark reads, this reads too.

    Raises:
        SparkDDPError: SDDP-101 where the file system keeps no times: a change of equal size would go unnoticed.
    """
    by_folder: dict[str, set[str]] = {}
    for name in names:
        by_folder.setdefault(name.rpartition("/")[0] + "/", set()).add(name)
    found = [facts for folder, wanted in by_folder.items() for facts in _listed(spark, folder, wanted)]
    if any(not time for _, _, time in found):
        raise unknowable(f"{found[0][0]} (its file system keeps no time of modification)")
    return sorted(found)


def _listed(spark: Any, folder: str, wanted: set[str]) -> list[list[Any]]:
    """One listing a folder: a request for each file would take minutes on an object store."""
    jvm = spark.sparkContext._jvm
    # As the session reads: with its own settings of the file systems.
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(next(iter(wanted)) if len(wanted) == 1 else folder))
    system = path.getFileSystem(conf)
    statuses = [system.getFileStatus(path)] if len(wanted) == 1 else system.listStatus(path)
    facts = [[s.getPath().toUri().toString(), s.getLen(), s.getModificationTime()] for s in statuses]
    return [each for each in facts if each[0] in wanted]

"""Files of a source as a test writes them, and what reading them gives or refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from airflow_provider_sparkddp.runtime.sources import mismatches, reading
from airflow_provider_sparkddp.spec.errors import SparkDDPError

NAME = "teil 1 + ü.{}"
CSV = {"header": "true", "inferSchema": "true"}


def write(folder: Path, files: Mapping[str, Any]) -> str:
    """The files by their names: a mapping of columns as Parquet or ORC, text and bytes as they are. The folder's URI."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Mapping):
            store = orc.write_table if name.endswith(".orc") else pq.write_table
            store(pa.table(dict(content)), path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return f"file://{folder}"


def of(path: str | list[str], kind: str = "parquet", *tolerate: str, **options: Any) -> dict[str, Any]:
    return {"format": kind, "path": path, "options": options, "tolerate": list(tolerate)}


def rows(spark: Any, source: Mapping[str, Any], *order: str) -> list[dict[str, Any]]:
    frame = reading.read(spark, source)
    return [row.asDict() for row in frame.orderBy(*(order or frame.columns)).collect()]


def found(spark: Any, source: Mapping[str, Any]) -> list[str]:
    return mismatches.findings(spark, source, reading.read(spark, source))


def refusal(spark: Any, act: Callable[[], Any], source: Mapping[str, Any]) -> SparkDDPError:
    """What the job says when `act` fails: looked into first, then told in Spark's words."""
    with pytest.raises(Exception) as caught:
        act()
    return reading.failed(source, caught.value, spark=spark)


def refused(spark: Any, source: Mapping[str, Any]) -> SparkDDPError:
    """The error of reading, comparing and counting every row, as a job does."""

    def act() -> None:
        frame = reading.read(spark, source)
        mismatches.findings(spark, source, frame)
        frame.write.format("noop").mode("overwrite").save()

    error = refusal(spark, act, source)
    assert len(error.message) <= 1500
    assert "\tat " not in str(error)
    return error

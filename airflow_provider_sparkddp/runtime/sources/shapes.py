"""What columns each file of a source has by its own word: the footer of Parquet and ORC, the header of CSV.

Spark takes one file's word for all. Here every file is asked, by executors when there are many, and only a few kilobytes of each are
read. A file that cannot be read here is listed with the reason; Spark may still be able to.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from airflow_provider_sparkddp import storage

# Up to so many files the driver asks by itself; object storage answers late, so several are asked at once.
FEW, AT_ONCE = 64, 8
# Compressed CSV that Python can't open by itself.
FOREIGN = (".deflate", ".snappy", ".lz4", ".zst", ".zip")
PATTERN = re.compile(r"([\[\]{}*?\\])")
# Most characters of a header.
LONG = 100_000
ENCODING = {"utf-8": "utf-8-sig", "utf8": "utf-8-sig"}
SPARK_NAMES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    # Spark has no unsigned numbers and takes the next wider one.
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "bool": "boolean",
    "large_string": "string",
    "string_view": "string",
    "large_binary": "binary",
    "binary_view": "binary",
    "date32[day]": "date",
    "null": "void",
}

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Shape:
    """Files that have the same columns: (name, Spark's type) in order; of a CSV header the types are ''.

    Attributes:
        columns: None for files that could not be read here; then `reason` says why.
    """

    columns: Columns | None
    files: tuple[str, ...]
    reason: str = ""


def of_files(spark: Any, uris: Sequence[str], kind: str, options: Mapping[str, str]) -> list[Shape]:
    """The shapes that lie there, those of most files first.

    Args:
        uris: as `DataFrame.inputFiles()` gives them, percent-encoded.
        kind: parquet, orc or csv.
        options: how CSV is to be read, with keys in lower case.
    """
    if len(uris) <= FEW:
        grouped: dict[str, list[int]] = {}
        for index, said in enumerate(_ask(uris, kind, options)):
            grouped.setdefault(said, []).append(index)
    else:
        grouped = _asked_by_executors(spark, uris, kind, options)
    found = [_shape(json.loads(said), [uris[index] for index in indexes]) for said, indexes in grouped.items()]
    unread = [uri for shape in found if shape.columns is None for uri in shape.files]
    if kind == "csv" and unread:
        found = [shape for shape in found if shape.columns is not None] + _headers_by_spark(spark, unread, options)
    return sorted(found, key=lambda shape: (-len(shape.files), shape.files))


def _shape(said: Mapping[str, Any], files: Sequence[str]) -> Shape:
    columns = said.get("columns")
    told = None if columns is None else tuple((name, kind) for name, kind in columns)
    return Shape(told, tuple(sorted(files)), said.get("reason", ""))


def _asked_by_executors(spark: Any, uris: Sequence[str], kind: str, options: Mapping[str, str]) -> dict[str, list[int]]:
    """What files say -> their places; the driver gets each different answer once."""
    from pyspark.sql import functions as F

    wanted = dict(options)
    tasks = min(len(uris), 4 * spark.sparkContext.defaultParallelism)
    frame = spark.createDataFrame(list(enumerate(uris)), "place int, uri string").repartition(tasks)
    asked = frame.mapInArrow(lambda batches: _ask_batches(batches, kind, wanted), "place int, said string")
    rows = asked.groupBy("said").agg(F.sort_array(F.collect_list("place")).alias("places")).collect()
    return {row["said"]: list(row["places"]) for row in rows}


def _ask_batches(batches: Iterator[Any], kind: str, options: Mapping[str, str]) -> Iterator[Any]:
    import pyarrow

    for batch in batches:
        said = _ask(batch.column("uri").to_pylist(), kind, options)
        yield pyarrow.RecordBatch.from_arrays([batch.column("place"), pyarrow.array(said)], ["place", "said"])


def _ask(uris: Sequence[str], kind: str, options: Mapping[str, str]) -> list[str]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda uri: json.dumps(_said(unquote(uri), kind, options)), uris))


def _said(uri: str, kind: str, options: Mapping[str, str]) -> dict[str, Any]:
    try:
        with storage.open_binary(uri) as handle:
            return {"columns": header(handle, uri, options) if kind == "csv" else footer(handle, kind)}
    except Exception as error:  # whatever it is: Spark is asked about the file then, and has the word
        return {"reason": f"{type(error).__name__}: {error}".splitlines()[0][:200].replace(uri, "it")}


def _headers_by_spark(spark: Any, uris: Sequence[str], options: Mapping[str, str]) -> list[Shape]:
    """Headers of what only Spark can open. It reads the files as text, so this costs a pass over them."""
    from pyspark.sql import functions as F

    given = {"lineSep": options["linesep"]} if options.get("linesep") else {}
    lines = spark.read.format("text").options(**given).load([plain_path(uri) for uri in uris])
    place = F.struct("_metadata.file_block_start", F.monotonically_increasing_id())
    named = lines.select(
        F.substring("value", 1, LONG).alias("line"), F.col("_metadata.file_path").alias("uri"), place.alias("at")
    )
    # A comment may stand above the header: some lines, of which the first that is none counts.
    first = named.where("trim(line) <> ''").where(~F.col("line").startswith(options.get("comment") or "\0"))
    rows = first.groupBy("uri").agg(F.min_by("line", "at").alias("line")).collect()
    grouped: dict[Columns, list[str]] = {}
    for row in rows:
        grouped.setdefault(tuple(names_in(iter([row["line"]]), options)), []).append(row["uri"])
    return [Shape(columns, tuple(sorted(files))) for columns, files in grouped.items()]


def plain_path(uri: str) -> str:
    """A file's URI as a path to read: not encoded, and what would be a pattern is none."""
    return PATTERN.sub(r"\\\1", unquote(uri))


def footer(handle: Any, kind: str) -> list[tuple[str, str]]:
    """Columns and types by name: their order is no difference."""
    if kind == "orc":
        from pyarrow import orc

        schema = orc.ORCFile(handle).schema
    else:
        from pyarrow import parquet

        schema = parquet.read_schema(handle)
    return sorted((field.name, type_name(field.type)) for field in schema)


def type_name(kind: Any) -> str:
    """Spark's name of an Arrow type. What only Arrow distinguishes (dictionaries, large strings, units of time) is one type."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        return type_name(kind.value_type)
    if types.is_timestamp(kind):
        # Without a zone, nanoseconds are what Arrow makes of INT96: Spark's older timestamps, which are instants.
        return "timestamp" if kind.tz or kind.unit == "ns" else "timestamp_ntz"
    if types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if types.is_struct(kind):
        return f"struct<{','.join(f'{kind.field(i).name}:{type_name(kind.field(i).type)}' for i in range(kind.num_fields))}>"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return SPARK_NAMES.get(str(kind), str(kind))


def header(handle: Any, uri: str, options: Mapping[str, str]) -> list[tuple[str, str]] | None:
    """The names in the first line that is one, in order; None where the file is empty.

    Raises:
        ValueError: the file is of a kind that only Spark can open.
    """
    import fsspec

    if uri.endswith(FOREIGN) or options.get("linesep"):
        raise ValueError("only Spark can open it")
    packed = fsspec.utils.infer_compression(uri)
    opened = fsspec.compression.compr[packed](handle, mode="rb") if packed else handle
    encoding = (options.get("encoding") or options.get("charset") or "utf-8").lower()
    lines = io.TextIOWrapper(opened, ENCODING.get(encoding, encoding), errors="replace")
    try:
        return names_in(lines, options)
    finally:
        lines.detach()


def names_in(lines: Iterator[str], options: Mapping[str, str]) -> list[tuple[str, str]]:
    """The names in the first of the lines that is neither blank nor a comment; nothing where there is none."""
    comment = options.get("comment")
    for line in lines:
        if line.strip() and not (comment and line.startswith(comment)):
            return [(name, "") for name in fields(line.rstrip("\r\n"), options)]
    return []


def fields(line: str, options: Mapping[str, str]) -> list[str]:
    """The values in a line of CSV."""
    separator = (options.get("sep") or options.get("delimiter") or ",").replace("\\t", "\t")
    if len(separator) > 1:
        return line.split(separator)
    quote, escape = options.get("quote", '"')[:1], options.get("escape", "\\")[:1]
    quoted: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    return next(csv.reader([line], delimiter=separator, escapechar=escape or None, **quoted), [])

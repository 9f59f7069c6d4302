"""Files of a source that don't agree with one another, or are malformed: counted, shown, and an error unless that is tolerated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from airflow_provider_sparkddp.runtime.sources import faults, files, folders, headers, malformed, shapes
from airflow_provider_sparkddp.spec.errors import SparkDDPError

# Most differences, files and values that are written out.
SHOWN = 5
MISSING = "missing"
# Formats whose folders Spark gives types by their looks; a table format knows its types.
INFERRED = (*files.TEXT, *files.FOOTED, "avro", "text", "xml")
MALFORMED = re.compile(r"MALFORMED_RECORD_IN_PARSING|MALFORMED_CSV_RECORD|CANNOT_PARSE_JSON_FIELD|BadRecordException")
DISAGREE = re.compile(r"CANNOT_MERGE_SCHEMAS|PARQUET_COLUMN_DATA_TYPE_MISMATCH|SchemaColumnConvertNotSupported")
HEADER = re.compile(
    r"CSV header does not conform to the schema|columns? in CSV header is not equal to number of fields"
)
HEADER_REMEDY = (
    "Name all columns in the header's order in source['schema'], or set source['tolerate']=['schemas']: columns then go by their "
    "names, whatever their order."
)
NO_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"
REMEDIES = {
    "schemas": "Write the files with one schema, or set source['tolerate']=['schemas']: columns are then matched by name, and "
    "one that a file lacks is null in its rows.",
    "malformed": "Mend the lines, or set source['tolerate']=['malformed']: they are then dropped and counted.",
    "partition_types": f"Set conf={{'{NO_INFERENCE}': 'false'}} on the operator: folders' values then stay text. Or set "
    "source['tolerate']=['partition_types'].",
}
TYPES_REMEDY = "Write the files with one type for it: what differs in type cannot be tolerated, only what is missing."


def findings(spark: Any, source: Mapping[str, Any], frame: Any) -> list[str]:
    """What was found in the files of the source, as lines for a person; none for another kind of source.

    Args:
        frame: the source as `reading.read` gave it.

    Raises:
        SparkDDPError: SDDP-212, naming file and column, for what stands not in source["tolerate"]; SDDP-203 for a file that
            cannot be read.
        Exception: what Spark raises while files are asked or lines are counted; see `reading.failed`.
    """
    if "path" not in source:
        return []
    found = {"partition_types": _partition_types(source, frame), "schemas": _schemas(spark, source, frame)}
    if files.format_of(source) in files.TEXT and files.tolerates(source, "malformed"):
        found["malformed"] = _malformed(malformed.count(spark, source, frame.schema), "dropped")
    refused = {kind: lines for kind, lines in found.items() if lines and not files.tolerates(source, kind)}
    if refused:
        raise SparkDDPError(
            "SDDP-212",
            " ".join(line for lines in refused.values() for line in lines),
            " ".join(_remedy(spark, source, frame, kind) for kind in refused),
        )
    return [line for lines in found.values() for line in lines]


def _remedy(spark: Any, source: Mapping[str, Any], frame: Any, kind: str) -> str:
    """Differing types of columnar files can't be tolerated, so that isn't advised."""
    columnar = kind == "schemas" and files.format_of(source) in files.FOOTED
    return TYPES_REMEDY if columnar and _schemas(spark, source, frame, only_types=True) else REMEDIES[kind]


def diagnose(spark: Any, source: Mapping[str, Any], error: Exception) -> SparkDDPError | None:
    """Why reading the source, or writing what was read, failed, if its files are to blame: SDDP-212, or None.

    Lines are counted only now: a source without malformed ones costs no second pass.
    """
    if "path" not in source:
        return None
    text = faults.whole(error)
    if HEADER.search(text):
        return SparkDDPError(
            "SDDP-212", f"source['schema'] is not the header's. {faults.readable(error, 900)}", HEADER_REMEDY
        )
    try:
        if MALFORMED.search(text):
            lines = _malformed(malformed.count(spark, source), "found")
            return SparkDDPError("SDDP-212", " ".join(lines), REMEDIES["malformed"]) if lines else None
        if DISAGREE.search(text):
            alone = _unmerged(source)
            lines = _schemas(spark, alone, files.read(spark, alone), only_types=True)
            return SparkDDPError("SDDP-212", " ".join(lines), TYPES_REMEDY) if lines else None
    except Exception:  # the error that is being looked into says more than one of the looking
        return None
    return None


def _unmerged(source: Mapping[str, Any]) -> dict[str, Any]:
    """The source as Spark reads it by itself: with the schema of one file."""
    given = {key: value for key, value in (source.get("options") or {}).items() if key.lower() != "mergeschema"}
    return {**source, "tolerate": [], "options": given}


def _partition_types(source: Mapping[str, Any], frame: Any) -> list[str]:
    if files.format_of(source) not in INFERRED:
        return []
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    lossy = folders.lossy(folders.values(frame.inputFiles(), files.bases(source)), types)
    named = {name.lower(): kind for name, kind in types.items()}
    return [
        f"The folders of column {column!r} become {named[column.lower()]}, by which {len(texts):,} of their values change: "
        f"{_listed([f'{column}={text}' for text in texts])}."
        for column, texts in lossy.items()
    ]


def _malformed(found: Sequence[malformed.Malformed], what: str) -> list[str]:
    if not found:
        return []
    total = sum(each.lines for each in found)
    return [f"Malformed lines {what}: {total:,}. {'; '.join(map(str, found[:SHOWN]))}{_more(len(found), 'files')}."]


def _schemas(spark: Any, source: Mapping[str, Any], frame: Any, only_types: bool = False) -> list[str]:
    """How the files' own schemas differ; Spark took one of them for all."""
    kind = files.format_of(source)
    uris = frame.inputFiles() if kind in files.FOOTED or files.has_header(source) else []
    if len(uris) < 2:
        return []
    found = shapes.of_files(spark, uris, kind, headers.lowered(source.get("options") or {}))
    unread = [shape for shape in found if shape.columns is None]
    if unread:
        _require_readable(spark, source, unread[0].files[0])
        return _by_spark(spark, source, unread[0].reason)
    if kind == "csv":
        return _headers([shape for shape in found if shape.columns])
    return _bounded([_column(name, places) for name, places in _differing(found, only_types).items()], "columns")


def _differing(found: Sequence[shapes.Shape], only_types: bool) -> dict[str, dict[str, list[str]]]:
    """Column -> its type, or that it is missing -> the files where it is so; columns that are the same in all are left out."""
    names = {name.lower(): name for shape in found for name, _ in shape.columns or ()}
    differing = {}
    for lower, name in sorted(names.items()):
        places: dict[str, list[str]] = {}
        for shape in found:
            types = {each.lower(): kind for each, kind in shape.columns or ()}
            places.setdefault(types.get(lower, MISSING), []).extend(shape.files)
        if len(places.keys() - {MISSING} if only_types else places) > 1:
            differing[name] = places
    return differing


def _column(name: str, places: Mapping[str, Sequence[str]]) -> str:
    most_first = sorted(places.items(), key=lambda place: -len(place[1]))
    return f"Column {name!r} is {', '.join(f'{kind} in {_files(where)}' for kind, where in most_first)}."


def _headers(found: Sequence[shapes.Shape]) -> list[str]:
    """CSV: Spark gives the names of one header to the values of all files, by place."""
    by_names: dict[tuple[str, ...], shapes.Shape] = {}
    for shape in found:
        names = tuple(name.lower() for name, _ in shape.columns or ())
        same = by_names.get(names)
        by_names[names] = shapes.Shape(shape.columns, shape.files + (same.files if same else ()))
    first, *others = by_names.values()
    lines = [
        f"Column {_first_difference(first, other)} of the header in {_files(other.files)}: {_header(other)}; "
        f"in {_files(first.files)}: {_header(first)}."
        for other in others
    ]
    return _bounded(lines, "headers")


def _first_difference(one: shapes.Shape, other: shapes.Shape) -> str:
    """The first name in the other header that isn't there, or isn't at its place, in the one."""
    names = [[name for name, _ in shape.columns or ()] for shape in (one, other)]
    place = next((i for i, (a, b) in enumerate(zip(*names, strict=False)) if a.lower() != b.lower()), None)
    if place is None:
        longer = max(names, key=len)
        place = min(map(len, names))
        return f"{longer[place]!r} ({'added' if longer is names[1] else 'missing'})"
    return f"{names[1][place]!r} (in place of {names[0][place]!r})"


def _header(shape: shapes.Shape) -> str:
    text = ", ".join(name for name, _ in shape.columns or ())
    return text if len(text) <= 120 else f"{text[:120]}…"


def _require_readable(spark: Any, source: Mapping[str, Any], uri: str) -> None:
    """Raises what Spark raises for a file that couldn't be read here: Spark has the word, and names the file."""
    try:
        files.read(spark, {**_unmerged(source), "path": shapes.plain_path(uri)}).schema  # noqa: B018
    except Exception as error:
        raise SparkDDPError(
            "SDDP-203",
            f"{unquote(uri)}: {faults.readable(error)}",
            "Replace the file, or remove it from the source: it is cut, or of another format.",
        ) from error


def _by_spark(spark: Any, source: Mapping[str, Any], reason: str) -> list[str]:
    """Where files can't be read from Python: what Spark says when it merges their schemas.

    It doesn't say which columns of the file that it took the schema from are missing in others.
    """
    try:
        merged = files.read(spark, {**source, "tolerate": ["schemas"]})
    except Exception as error:
        raise SparkDDPError("SDDP-212", faults.readable(error), TYPES_REMEDY) from error
    alone = files.read(spark, _unmerged(source)).columns
    lacking = [name for name in merged.columns if name not in alone]
    told = f"which Spark alone could compare ({reason})"
    return _bounded([f"Column {name!r} is missing in some of the files, {told}." for name in lacking], "columns")


def _bounded(lines: Sequence[str], what: str) -> list[str]:
    return [*lines[:SHOWN], *([f"{len(lines) - SHOWN:,} more {what} differ."] if len(lines) > SHOWN else [])]


def _files(uris: Sequence[str]) -> str:
    example = unquote(min(uris))
    return f"{len(uris):,} files such as {example}" if len(uris) > 1 else example


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(texts[:SHOWN]) + _more(len(texts), "values")


def _more(number: int, what: str) -> str:
    return f" and {number - SHOWN:,} more {what}" if number > SHOWN else ""

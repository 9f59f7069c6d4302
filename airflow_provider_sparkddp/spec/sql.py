"""Whether an SQL text is a query. Spark runs another statement as soon as it is given one, and a source must change nothing."""

from __future__ import annotations

import re

from airflow_provider_sparkddp.spec.errors import SparkDDPError

# A comment, or something quoted. Whichever begins first holds the other: a quote in a comment opens nothing.
_ASIDE = re.compile(r"(--[^\n]*|/\*.*?\*/)|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`(?:``|[^`])*`", re.DOTALL)
# How a query of Spark SQL begins; all else is a command.
_QUERY = re.compile(r"\s*(\(|(select|with|from|values|table|map|reduce)\b)", re.IGNORECASE)
# What may follow WITH … or FROM … and writes. Column names such as `update` alone are no statement.
_WRITES = re.compile(
    r"\binsert\s+(into|overwrite)\b|\bmerge\s+(with\s+schema\s+evolution\s+)?into\b|\)\s*delete\s+from\b"
    r"|\)\s*update\s+[\w.]+(\s+(as\s+)?\w+)?\s+set\b",
    re.IGNORECASE,
)
# Of a database's SQL only this is known to be none: the dialects differ.
_COMMANDS = re.compile(r"\s*(alter|call|create|delete|drop|exec|grant|insert|merge|truncate|update)\b", re.IGNORECASE)


def require_query(name: str, sql: str) -> None:
    """Raises SparkDDPError SDDP-101 for Spark SQL that is no query, or that writes."""
    text = _bare(sql)
    if not text.strip():
        raise SparkDDPError("SDDP-101", f"{name} holds no statement.", "Write SELECT …")
    if not _QUERY.match(text):
        _refuse(name, text.split()[0])
    writes = _WRITES.search(text)
    if writes:
        _refuse(name, " ".join(writes[0].strip(") \n").split()))


def require_no_command(name: str, sql: str) -> None:
    """Raises SparkDDPError SDDP-101 for a database's SQL that begins as a command."""
    found = _COMMANDS.match(_bare(sql))
    if found:
        _refuse(name, found[1])


def _bare(sql: str) -> str:
    """Without comments, and with something plain for what is quoted."""
    return _ASIDE.sub(lambda found: " " if found[1] else "q", sql).lstrip("\ufeff")


def _refuse(name: str, words: str) -> None:
    raise SparkDDPError(
        "SDDP-101",
        f"{name} holds {words!r}: it is no query, and would change what is stored.",
        "Write SELECT … (or WITH … SELECT …); run other statements in a task of their own before this one.",
    )

"""Folders' values: which columns they make, and which lose something by a type."""

from __future__ import annotations

import pytest

from airflow_provider_sparkddp.runtime.sources import folders


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("007", "int"),
        ("+1", "int"),
        ("-0", "bigint"),
        ("-01", "int"),
        ("1.10", "double"),
        ("1d", "double"),
        ("NaN", "double"),
        ("Infinity", "double"),
        ("123456789012345678901234567890123456789012", "double"),
        ("1e3", "decimal(10,0)"),
    ],
)
def test_text_that_a_value_does_not_give_back_is_lost(text: str, kind: str) -> None:
    assert folders.loses(text, kind)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0", "int"),
        ("7", "int"),
        ("-12", "bigint"),
        ("100", "int"),
        ("0.5", "double"),
        ("2", "double"),
        ("12345678901234567890", "decimal(20,0)"),
        ("007", "string"),
        ("2013-01-01", "date"),
        ("2013-01-01 00:00:00", "timestamp"),
    ],
)
def test_text_that_a_value_gives_back_is_kept(text: str, kind: str) -> None:
    assert not folders.loses(text, kind)


FILES = [
    "file:///d%20b/code=007/gr%C3%B6%C3%9Fe=1%252F2/p%20q.parquet",
    "file:///d%20b/code=8/größe=__HIVE_DEFAULT_PARTITION__/p.parquet",
]


@pytest.mark.parametrize(
    ("bases", "expected"),
    [
        (["file:///d b"], {"code": {"007", "8"}, "größe": {"1/2"}}),
        (["/d b/"], {"code": {"007", "8"}, "größe": {"1/2"}}),
        (["file:/d*"], {"code": {"007", "8"}, "größe": {"1/2"}}),
        (["file:///d b/code=*"], {"größe": {"1/2"}}),
        (["file:///d b/code=007/größe=1%2F2", "file:///d b/code=8"], {}),
        (["file:///elsewhere"], {}),
    ],
)
def test_folders_below_the_source_s_paths_are_columns(bases: list[str], expected: dict[str, set[str]]) -> None:
    assert folders.values(FILES, bases) == expected


def test_only_columns_of_the_source_are_looked_at() -> None:
    found = {"Code": {"007", "8"}, "other": {"01"}, "day": {"2013-01-01"}}
    assert folders.lossy(found, {"code": "int", "day": "date"}) == {"Code": ["007"]}

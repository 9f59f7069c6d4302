"""What is wrong with a malformed line."""

from __future__ import annotations

import pytest

from airflow_provider_sparkddp.runtime.sources import malformed


@pytest.mark.parametrize(
    ("line", "row", "kind", "reason"),
    [
        ("1,2,3", {"id": 1, "x": 2}, "csv", "3 values for 2 columns"),
        ("1", {"id": 1}, "csv", "1 values for 2 columns"),
        ("1,abc", {"id": 1}, "csv", "column 'x'"),
        ("1,2", {"id": 1, "x": 2}, "csv", ""),
        ('{"id":1,"x":"abc"}', {"id": 1}, "json", "column 'x'"),
        ('{"id":1', {}, "json", "no JSON: Expecting ',' delimiter: line 1 column 8 (char 7)"),
        ("[1]", {}, "json", "a list, not an object"),
        ('{"id":null}', {}, "json", ""),
    ],
)
def test_what_is_wrong_with_a_line_is_told_where_it_can_be(
    line: str, row: dict[str, int], kind: str, reason: str
) -> None:
    assert malformed.why(line, row, ["id", "x"], kind, {}) == reason

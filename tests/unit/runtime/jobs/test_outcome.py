"""What a person reads at the end: aligned tables and phases with their seconds."""

from __future__ import annotations

import pytest

from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome, table


def test_a_table_is_aligned_and_reads_like_one() -> None:
    rows = [["a", 1234567, 0.123456, None], ["longer", 5, 41200.7, True]]
    assert table(["name", "rows", "loss", "gap"], rows) == [
        "name         rows    loss   gap",
        "------  ---------  ------  ----",
        "a       1,234,567  0.1235     -",
        "longer          5  41,201  True",
    ]


def test_a_table_without_rows_is_its_header() -> None:
    assert table(["rank", "rows"], []) == ["rank  rows", "----  ----"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(9999.4, "9999"), (-12345.6, "-12,346"), (0.98, "0.98"), (1e-7, "1e-07"), (float("nan"), "nan"), ("x", "x")],
)
def test_numbers_are_as_exact_as_a_person_needs(value: object, text: str) -> None:
    assert table(["a", "b"], [["r", value]])[-1].split()[1] == text


def test_a_phase_is_announced_and_timed(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome()
    with outcome.phase("read source"):
        assert "sparkddp: read source …" in capsys.readouterr().out, "announced before it is done"
    assert outcome.seconds["read source"] >= 0


def test_a_phase_that_failed_is_not_told_as_done() -> None:
    outcome = Outcome()
    with pytest.raises(ValueError, match="broken"), outcome.phase("train"):
        raise ValueError("broken")
    assert outcome.seconds == {}

"""A rank's log keeps its beginning and its end, whole lines with their time, in bounded memory."""

from __future__ import annotations

import re

import pytest

from airflow_provider_sparkddp.runtime.progress.rank_log import LINE_CHARACTERS, RankLog


def lines(log: RankLog) -> list[str]:
    """Without their times."""
    return [line[24:] if line[0].isdigit() else line for line in log.text()[0].decode().splitlines()]


def test_a_line_has_its_time_and_where_it_came_from() -> None:
    log = RankLog()
    log.write("stdout", "hello\n")
    assert re.fullmatch(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} stdout  hello\n", log.text()[0])


def test_pieces_of_a_line_are_put_together_for_each_stream() -> None:
    log = RankLog()
    for source, text in [("stdout", "a"), ("stderr", "x\ny"), ("stdout", "b\nc"), ("stdout", "\n")]:
        log.write(source, text)
    assert lines(log) == ["stderr  x", "stdout  ab", "stdout  c"]
    log.finish("stderr")
    log.finish("stderr")
    assert lines(log)[-1] == "stderr  y"


def test_of_a_progress_bar_the_last_state_is_kept() -> None:
    log = RankLog()
    for percent in range(0, 101, 10):
        log.write("stderr", f"\r{percent}%")
    log.write("stderr", "\ndone\r\n")
    assert lines(log) == ["stderr  100%", "stderr  done"]


def test_of_a_long_log_the_middle_is_left_out_and_counted() -> None:
    log = RankLog(head_bytes=400, tail_bytes=800)
    for number in range(1000):
        log.write("stdout", f"line {number}\n")
    text, found = log.text()[0], lines(log)
    assert len(text) <= 400 + 800 + 50
    assert (found[0], found[-1]) == ("stdout  line 0", "stdout  line 999")
    gap = next(index for index, line in enumerate(found) if "left out" in line)
    assert found[gap] == f"… {1000 - (len(found) - 1):,} lines left out …"
    kept = [int(line.rsplit(" ", 1)[1]) for line in found[:gap] + found[gap + 1 :]]
    assert kept == [*range(gap), *range(1000 - (len(found) - 1 - gap), 1000)]


@pytest.mark.parametrize("end", ["\n", ""])
def test_an_endless_line_is_cut(end: str) -> None:
    log = RankLog()
    log.write("stdout", "x" * (3 * LINE_CHARACTERS) + end)
    assert lines(log) == ["stdout  " + "x" * LINE_CHARACTERS + f" … ({3 * LINE_CHARACTERS:,} characters)"]

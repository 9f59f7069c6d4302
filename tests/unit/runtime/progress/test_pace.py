"""How long a training still takes."""

from __future__ import annotations

import pytest

from airflow_provider_sparkddp.runtime.progress.pace import seconds_left


@pytest.mark.parametrize(
    ("limits", "until_max_time", "expected"),
    [
        ([(2, 10)], None, 400.0),
        ([(2, 10), (50, 150)], None, 200.0),
        ([(2, 10)], 30.0, 30.0),
        ([(2, 10)], 1e6, 400.0),
        ([], 5.0, 5.0),
        ([], -1.0, 0.0),
        ([(10, 10)], None, 0.0),
        ([(11, 10)], None, 0.0),
        ([(0, 10)], None, None),
        ([], None, None),
    ],
)
def test_the_first_limit_ends_it(
    limits: list[tuple[float, float]], until_max_time: float | None, expected: float | None
) -> None:
    assert seconds_left(100.0, limits, until_max_time) == expected

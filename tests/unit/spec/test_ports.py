"""A range of ports is two numbers with room between them."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sparkddp.spec.ports import FEWEST, ports
from tests.support.refusals import refused


@pytest.mark.parametrize("text", ["34000-34100", " 34000 - 34100 "])
def test_it_is_written_with_a_dash(text: str) -> None:
    assert ports(text) == (34000, 34100)


@pytest.mark.parametrize(
    "value", ["34000", "34100-34000", "80-90", "65000-70000", "a-b", 34000, "34000:34100", "1024-"]
)
def test_anything_else_is_refused(value: Any) -> None:
    with refused("SDDP-101", repr(value), "34000-34100"):
        ports(value)


def test_too_few_are_refused() -> None:
    assert ports(f"2000-{2000 + FEWEST - 1}") == (2000, 2000 + FEWEST - 1)
    with refused("SDDP-101", f"holds {FEWEST - 1} ports", f"at least {FEWEST}"):
        ports(f"2000-{2000 + FEWEST - 2}")

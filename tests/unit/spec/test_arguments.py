"""What a template rendered to text becomes a value of the declared type, or is refused; nothing is guessed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparkddp.spec.arguments import CONVERTERS, EXPECTED, UNKNOWN, Argument, check_arguments, convert
from tests.support.refusals import refused


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("int", "3", 3),
        ("int", " 3 ", 3),
        ("int", "-2", -2),
        ("int", 3.0, 3),
        ("float", "1e-3", 0.001),
        ("float", 2, 2.0),
        ("number", "1", 1),
        ("number", "1.0", 1.0),
        ("number", 1, 1),
        ("number", "+4", 4),
        ("number", "1e-3", 0.001),
        ("bool", "False", False),
        ("bool", "true", True),
        ("bool", False, False),
        ("str", "alias", "alias"),
        ("str", "007", "007"),
        ("str", 7, "7"),
        ("names", "['a', \"b\"]", ["a", "b"]),
        ("names", '["a"]', ["a"]),
        ("names", "[]", []),
        ("names", ("a", "b"), ["a", "b"]),
        ("dict", "{'a': None, 'b': True}", {"a": None, "b": True}),
        ("dict", '{"a": null, "b": true}', {"a": None, "b": True}),
        ("dict", {"a": 1}, {"a": 1}),
        ("any", "['a']", "['a']"),
    ],
)
def test_a_value_becomes_the_declared_type(type_: str, value: Any, expected: Any) -> None:
    converted = convert("argument", value, type_)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("int", "3.5"),
        ("int", 3.5),
        ("int", "three"),
        ("int", ""),
        ("int", True),
        ("int", [3]),
        ("int", float("inf")),
        ("float", "nan"),
        ("float", "inf"),
        ("float", "1e999"),
        ("float", 10**400),
        ("float", False),
        ("float", None),
        ("float", {}),
        ("number", True),
        ("number", "²"),
        ("number", float("nan")),
        ("bool", "yes"),
        ("bool", 1),
        ("bool", 0),
        ("bool", ""),
        ("str", ""),
        ("str", True),
        ("str", ["a"]),
        ("str", {"a": 1}),
        ("names", "a"),
        ("names", "a, b"),
        ("names", "[1]"),
        ("names", {"a": 1}),
        ("names", 3),
        ("names", "__import__('os')"),
        ("dict", "[1]"),
        ("dict", "{'a': 1"),
        ("dict", "{'a': open('x')}"),
        ("dict", "[" * 100_000),
        ("dict", 3),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_does_not_convert_is_refused_naming_argument_value_and_expectation(type_: str, value: Any) -> None:
    with refused("SDDP-101", "batch_size=", repr(value), type(value).__name__, EXPECTED[type_]):
        convert("batch_size", value, type_)


def test_every_type_says_what_it_expects() -> None:
    assert set(CONVERTERS) == set(EXPECTED)


@given(st.integers(-(2**63), 2**63))
def test_a_whole_number_survives_rendering(number: int) -> None:
    assert convert("n", str(number), "int") == convert("n", str(number), "number") == number


@given(st.lists(st.text()), st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()))
def test_lists_and_dicts_survive_rendering(names: list[str], values: dict[str, Any]) -> None:
    assert convert("n", str(names), "names") == names
    assert convert("n", str(values), "dict") == values


DECLARED = {"rows": Argument("int", required=True, minimum=1), "seed": Argument("int"), "any": Argument("any")}


def test_unknown_values_are_left_out_and_missing_ones_are_none() -> None:
    assert check_arguments(DECLARED, {"rows": UNKNOWN}) == {"seed": None, "any": None}
    assert check_arguments(DECLARED, {"rows": "2", "seed": "0"}) == {"rows": 2, "seed": 0, "any": None}


def test_a_missing_argument_is_refused_saying_what_to_set() -> None:
    with refused("SDDP-101", "rows is not set", "a whole number"):
        check_arguments(DECLARED, {"rows": None})


def test_a_value_below_its_minimum_is_refused_with_both_numbers() -> None:
    with refused("SDDP-101", "rows='0' is too small", "at least 1"):
        check_arguments(DECLARED, {"rows": "0"})


def test_unknown_is_false_and_says_when_it_will_be_known() -> None:
    assert not UNKNOWN
    assert repr(UNKNOWN) == "<known when the task runs>"
    assert convert("n", UNKNOWN, "int") is UNKNOWN

"""Every error has a code that the table knows, and survives every border that it crosses."""

from __future__ import annotations

import ast
import pickle  # noqa: TID251  # Spark and Airflow pickle exceptions; nothing of storage is read here
from collections.abc import Iterator
from pathlib import Path

import pytest

import airflow_provider_sparkddp
from airflow_provider_sparkddp.spec.errors import CODES, Failure, SparkDDPError, nearest

PACKAGE = Path(airflow_provider_sparkddp.__file__).parent
ERROR = SparkDDPError("SDDP-404", "rank 1 raised", "Mend it.", {"rank": 1, "host": "a"})


def codes_in_source() -> Iterator[str]:
    """Every text constant of the package that looks like a code, docstrings and the table itself left out."""
    for path in PACKAGE.rglob("*.py"):
        if path != PACKAGE / "spec" / "errors.py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("SDDP-"):
                    yield node.value


def test_every_code_that_is_used_stands_in_the_table() -> None:
    assert set(codes_in_source()) <= set(CODES)


def test_every_code_of_the_table_is_used() -> None:
    assert set(CODES) <= set(codes_in_source())


def test_an_unknown_code_cannot_be_raised() -> None:
    with pytest.raises(KeyError, match="SDDP-999"):
        SparkDDPError("SDDP-999", "message", "remedy")


def test_the_text_holds_code_title_message_and_remedy() -> None:
    assert str(ERROR) == "[SDDP-404] A rank failed: rank 1 raised. What to do: Mend it."


def test_an_error_survives_pickling_with_all_its_parts() -> None:
    copy = pickle.loads(pickle.dumps(ERROR))
    assert type(copy) is SparkDDPError
    assert (copy.code, copy.message, copy.remedy, copy.details) == (
        ERROR.code,
        ERROR.message,
        ERROR.remedy,
        ERROR.details,
    )
    assert str(copy) == str(ERROR)


def test_a_failure_as_plain_data_becomes_the_same_error_again() -> None:
    again = Failure(**Failure.of(ERROR).to_json()).error()
    assert (str(again), again.details) == (str(ERROR), ERROR.details)


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_title(code: str) -> None:
    assert CODES[code].title and not CODES[code].title.endswith(".")


def test_the_details_decide_about_a_retry_before_the_table_does() -> None:
    assert SparkDDPError("SDDP-301", "m", "r").retry
    assert not SparkDDPError("SDDP-301", "m", "r", {"retry": False}).retry
    assert not SparkDDPError("SDDP-101", "m", "r").retry


@pytest.mark.parametrize(
    ("name", "hint"), [("max_epoch", "Did you mean 'max_epochs'? "), ("zzz", ""), (7, "")], ids=str
)
def test_the_nearest_name_is_told_if_there_is_one(name: object, hint: str) -> None:
    assert nearest(name, ["max_epochs", "devices"]) == hint  # type: ignore[arg-type]

"""What was given is known, and blotted out of what is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from airflow_provider_sparkddp.runtime import secrets

ODD = 'p/w & "q"\'\\ü'


@pytest.fixture(autouse=True)
def none_kept() -> Iterator[None]:
    yield
    secrets.give({})


def test_what_is_given_replaces_what_was() -> None:
    secrets.give({"url": "jdbc:a:b", "user": "me"})
    secrets.give({"url": "jdbc:c:d"})
    assert (secrets.given("url"), secrets.given("user")) == ("jdbc:c:d", None)


@pytest.mark.parametrize(
    "told",
    [
        ODD,
        "p%2Fw%20%26%20%22q%22%27%5C%C3%BC",
        "p%2Fw+%26+%22q%22%27%5C%C3%BC",
        '"p/w & \\"q\\"\'\\\\\\u00fc"',
        repr(ODD),
    ],
    ids=["as it is", "percent", "plus", "json", "repr"],
)
def test_a_password_is_blotted_out_however_it_is_written(told: str) -> None:
    secrets.give({"password": ODD})
    assert "q" not in secrets.redacted(f"failed with <{told}>")
    assert "***" in secrets.redacted(f"failed with <{told}>")


def test_what_is_no_secret_stays() -> None:
    secrets.give({"url": "jdbc:postgresql://host/db", "user": "postgres", "driver": "org.postgresql.Driver"})
    words = 'database "postgres" at jdbc:postgresql://host/db, org.postgresql.Driver'
    assert secrets.redacted(words) == words


def test_a_password_too_short_to_hide_spoils_no_words() -> None:
    secrets.give({"password": "data"})
    assert secrets.redacted("the database has no data") == "the database has no data"


def test_all_texts_of_a_value_are_covered() -> None:
    secrets.give({"password": "hunter2"})
    told = {"traceback": "x hunter2 y", "rank": 1, "summary": ["hunter2", ("hunter2hunter2", None)], "retry": True}
    blotted = {"traceback": "x *** y", "rank": 1, "summary": ["***", ["******", None]], "retry": True}
    assert secrets.redacted(told) == blotted


@drawn(st.text(min_size=secrets.SHORTEST, max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_no_password_survives(password: str, before: str, after: str) -> None:
    if set(password) <= {"*"}:
        return
    secrets.give({"password": password})
    try:
        assert password not in secrets.redacted(before + "<" + password + ">" + after).replace("***", "")
    finally:
        secrets.give({})


def test_a_replay_takes_its_secrets_out_of_the_environment() -> None:
    environment = {"SPARKDDP_JDBC_URL": "jdbc:a:b", "SPARKDDP_JDBC_PASSWORD": "hunter2", "PATH": "/bin"}
    assert secrets.taken_from(environment) == {"url": "jdbc:a:b", "password": "hunter2"}
    assert environment == {"PATH": "/bin"}

"""What the Airflow task gave this process to keep to itself: a database's URL, user, password and driver class."""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import quote, quote_plus

from airflow_provider_sparkddp.spec.secrets import SECRET

# name -> the environment variable that gives it to a replay, which has no Airflow to ask
REPLAYED = {
    "url": "SPARKDDP_JDBC_URL",
    "user": "SPARKDDP_JDBC_USER",
    "password": "SPARKDDP_JDBC_PASSWORD",
    "driver": "SPARKDDP_JDBC_DRIVER",
}
# As Airflow's own masker: blotting out a shorter one would spoil every other word, and hide nothing.
SHORTEST = 5
_given: dict[str, str] = {}


def give(secrets: Mapping[str, str]) -> None:
    """From now on these are known, and none of before."""
    _given.clear()
    _given.update(secrets)


def given(name: str) -> str | None:
    return _given.get(name)


def taken_from(environment: MutableMapping[str, str]) -> dict[str, str]:
    """A replay's secrets. They are taken out, so that no process that this one starts has them."""
    found = {name: environment.pop(variable, "") for name, variable in REPLAYED.items()}
    return {name: value for name, value in found.items() if value}


def redacted(value: Any) -> Any:
    """The text, or plain JSON value with texts, with *** for each secret in it, however it is escaped."""
    if isinstance(value, str):
        for secret in sorted(_forms(), key=len, reverse=True):
            value = value.replace(secret, "***")
        return value
    if isinstance(value, Mapping):
        return {key: redacted(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [redacted(inner) for inner in value]
    return value


def _forms() -> set[str]:
    values = [v for name, v in _given.items() if SECRET.search(name) and len(v) >= SHORTEST]
    return {form for v in values for form in (v, quote(v, safe=""), quote_plus(v), json.dumps(v)[1:-1], repr(v)[1:-1])}

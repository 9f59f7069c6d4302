"""A reader takes what was written whole, by this protocol, and refuses everything else in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparkddp.spec import wire
from tests.support.refusals import refused

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
TEXT = wire.pack("manifest", {"rows": 3, "name": "größe"})


def unpack(text: str) -> dict[str, Any]:
    return wire.unpack("manifest", text, "file:///m.json", code="SDDP-208")


@given(st.dictionaries(st.text(), PLAIN, max_size=5))
def test_what_is_packed_is_unpacked_unchanged(body: dict[str, Any]) -> None:
    assert wire.unpack("result", wire.pack("result", body), "here") == body


def test_another_kind_is_refused_naming_both() -> None:
    with refused("SDDP-208", "'sparkddp/result'", "'sparkddp/manifest'", "file:///m.json"):
        unpack(wire.pack("result", {}))


def test_another_protocol_is_refused_naming_both_numbers() -> None:
    envelope = json.loads(TEXT) | {"protocol": 99}
    with refused("SDDP-306", "99", f"reads {wire.PROTOCOL}"):
        unpack(json.dumps(envelope))


def test_a_changed_body_is_refused() -> None:
    envelope = json.loads(TEXT)
    envelope["body"]["rows"] = 4
    with refused("SDDP-208", "changed"):
        unpack(json.dumps(envelope))


@given(st.integers(0, len(TEXT.rstrip()) - 1))
def test_a_text_that_was_cut_anywhere_is_refused(length: int) -> None:
    with refused("SDDP-208"):
        unpack(TEXT[:length])


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "null",
        "3",
        '"text"',
        "{}",
        "PAR1\x00\x15",
        "<html>not found</html>",
        "[" * 100_000,
        '{"kind": "sparkddp/manifest", "protocol": 1, "checksum": "x", "body": [1]}',
        '{"kind": "sparkddp/manifest", "protocol": 1, "checksum": "x", "body": {"rows": NaN}}',
        '{"kind": "sparkddp/manifest", "protocol": 1, "body": {}}',
    ],
    ids=lambda text: text[:20],
)
def test_a_foreign_text_is_refused(text: str) -> None:
    with refused("SDDP-208"):
        unpack(text)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_json_are_never_written(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        wire.pack("result", {"loss": number})

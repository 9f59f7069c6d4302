"""A result is believed only under this try's nonce, whole and unchanged."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparkddp.spec import wire
from airflow_provider_sparkddp.spec.errors import Failure, SparkDDPError
from airflow_provider_sparkddp.spec.results import JobResult
from tests.support.refusals import refused

DONE = JobResult("train", "now", {"alias": "a"}, ("one line",), {"train": 1.5}, report={"ranks": [1]})
FAILED = JobResult("train", "now", failure=Failure.of(SparkDDPError("SDDP-405", "lost", "Look.", {"rank": 1})))


@pytest.mark.parametrize("result", [DONE, FAILED], ids=["done", "failed"])
def test_a_result_survives_storage(result: JobResult) -> None:
    assert JobResult.from_text(result.to_text(), "result.json", "now") == result


def test_a_result_of_an_earlier_try_is_refused_with_both_nonces() -> None:
    with refused("SDDP-305", "'now'", "'later'", "result.json"):
        JobResult.from_text(DONE.to_text(), "result.json", "later")


def test_a_result_of_another_protocol_is_refused_before_it_is_read() -> None:
    envelope = json.loads(DONE.to_text()) | {"protocol": wire.PROTOCOL + 1, "body": {"unheard": "of"}}
    with refused("SDDP-306", "protocol 2"):
        JobResult.from_text(json.dumps(envelope), "result.json", "now")


def test_half_a_result_is_refused() -> None:
    with refused("SDDP-306", "not whole JSON"):
        JobResult.from_text(DONE.to_text()[:-20], "result.json", "now")

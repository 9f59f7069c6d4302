"""What every refusal must be: the right code, the words that help, a reason and a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from airflow_provider_sparkddp.spec.errors import SparkDDPError


@contextmanager
def refused(code: str, *texts: str) -> Iterator[None]:
    """The block raises a SparkDDPError of this code, whose message holds all of the texts."""
    with pytest.raises(SparkDDPError) as caught:
        yield
    error = caught.value
    assert error.code == code, str(error)
    for text in texts:
        assert text in str(error)
    assert error.message.strip() and error.remedy.strip()

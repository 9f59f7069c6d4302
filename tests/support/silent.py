"""Storage that hangs for real: an S3 whose server takes connections and never answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.support import s3


@pytest.fixture
def silent_storage() -> Iterator[str]:
    """The URI of a folder there; the environment leads to it."""
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.MonkeyPatch.context() as patch:
        for name in s3.FOREIGN:
            patch.delenv(name, raising=False)
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        for name, value in {**s3.ACCESS, "AWS_ENDPOINT_URL": endpoint}.items():
            patch.setenv(name, value)
        s3.forget()
        yield "s3://bucket/folder"
    s3.forget()

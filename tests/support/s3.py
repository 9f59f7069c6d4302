"""An S3 of the tests' own: moto's server, in a thread of this process, and a bucket in it.

Whoever is to reach it learns of it as users' processes do: by the environment alone.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

ACCESS = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "the-secret-key-of-these-tests",
    "AWS_DEFAULT_REGION": "us-east-1",
    # Nothing of the person or the machine that runs the tests.
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1",
}
FOREIGN = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3")


@dataclass(frozen=True)
class Bucket:
    """A bucket, and a client that knows nothing of fsspec: it stands for others who read and write there."""

    name: str
    client: Any

    @property
    def uri(self) -> str:
        return f"s3://{self.name}"

    def put(self, key: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.name, Key=key, Body=data)

    def keys(self, prefix: str = "") -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return sorted(found["Key"] for page in pages for found in page.get("Contents", ()))


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    """A fresh bucket; the server and the environment are there until the module ends."""
    # Imported here: the tests of the package need neither.
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name in FOREIGN:
                patch.delenv(name, raising=False)
            for name, value in {**ACCESS, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
                patch.setenv(name, value)
            made = Bucket(f"tests-{uuid.uuid4().hex[:12]}", boto3.client("s3"))
            made.client.create_bucket(Bucket=made.name)
            yield made
            forget()
            made.client.close()
    finally:
        server.stop()


def forget() -> None:
    """fsspec keeps what it made of an environment that has changed since."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()

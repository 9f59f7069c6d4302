"""What storage promises alike on disks and on an object store (moto's server)."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.storage import leases
from tests.support.refusals import refused
from tests.support.s3 import Bucket


@pytest.fixture(params=["file", "s3"])
def folder(bucket: Bucket, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A place of the test's own, with a name as people give them."""
    base = bucket.uri if request.param == "s3" else tmp_path.as_uri()
    return paths.absolute_uri(f"{base}/späte flüge/{request.node.name}", "folder")


def test_what_is_written_is_read_again(folder: str) -> None:
    target = paths.join(folder, "a", "text.json")
    storage.write_text(target, "né\n")
    assert storage.read_text(target) == "né\n"
    storage.write_bytes(target, b"\x00\xff")
    assert storage.read_bytes(target) == b"\x00\xff"
    assert storage.size(target) == 2
    assert storage.sha256(target) == hashlib.sha256(b"\x00\xff").hexdigest()
    assert storage.exists(target)
    assert not storage.older_than(target, 60)


def test_a_local_file_goes_to_storage_and_comes_back(folder: str, tmp_path: Path) -> None:
    local, back, target = tmp_path / "local", tmp_path / "back", paths.join(folder, "file")
    local.write_bytes(b"weights")
    storage.put_file(local, target)
    storage.get_file(target, back)
    assert back.read_bytes() == b"weights"
    with storage.open_binary(target) as handle:
        handle.seek(3)
        assert handle.read() == b"ghts"


def test_files_are_listed_by_name(folder: str) -> None:
    for name in ("b", "a", "deep/er/c"):
        storage.write_text(paths.join(folder, name), name)
    assert storage.names(folder) == ["a", "b", "deep"]
    assert storage.files_below(folder) == ["a", "b", "deep/er/c"]
    storage.remove(paths.join(folder, "a"))
    assert storage.names(folder) == ["b", "deep"]
    assert storage.names(paths.join(folder, "nowhere")) == storage.files_below(paths.join(folder, "nowhere")) == []


def test_readers_and_removers_see_one_another(folder: str) -> None:
    manifest = paths.join(folder, "manifest.json")
    storage.write_text(manifest, "{}")
    with leases.lease(manifest, "reader", "a training"):
        assert leases.readers(manifest, time.time()) == ["a training"]
    assert leases.readers(manifest, time.time()) == []
    leases.announce(manifest, "remover", "an old run", time.time())
    with refused("SDDP-208", "an old run"), leases.lease(manifest, "reader", "a training"):
        pass
    leases.withdraw(manifest, "remover")
    assert leases.removers(manifest, time.time()) == []
    written = leases.last_used(manifest)
    assert written is not None
    leases.touch(manifest, written + 100)
    assert leases.last_used(manifest) == written + 100


def test_sizes_come_with_names(folder: str) -> None:
    for name in ("a", "deep/er/c"):
        storage.write_text(paths.join(folder, name), name)
    assert storage.sizes_below(folder) == {"a": 1, "deep/er/c": 9}
    assert storage.sizes_below(paths.join(folder, "missing")) == {}

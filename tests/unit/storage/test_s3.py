"""Storage on an object store, against moto's server: the same promises as on disks, and what others write is seen at once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec import paths
from tests.support import s3
from tests.support.refusals import refused
from tests.support.s3 import Bucket

MISSING = "s3://no-such-bucket/folder/file"


@pytest.fixture
def folder(bucket: Bucket, request: pytest.FixtureRequest) -> str:
    """A place of the test's own, with a name as people give them."""
    return paths.absolute_uri(f"{bucket.uri}/späte flüge/{request.node.name}", "folder")


@pytest.fixture
def fresh() -> Iterator[None]:
    """For a test that changes the environment."""
    s3.forget()
    yield
    s3.forget()


def key(uri: str) -> str:
    return uri.removeprefix("s3://").split("/", 1)[1]


def test_a_tree_is_measured_and_removed(bucket: Bucket, folder: str) -> None:
    for name in ("a", "deep/er/c"):
        storage.write_text(paths.join(folder, "tree", name), name)
    storage.write_text(paths.join(folder, "treetop"), "stays")
    bucket.put(key(folder) + "/tree/", b"")
    assert storage.sizes_below(paths.join(folder, "tree")) == {"a": 1, "deep/er/c": 9}
    storage.remove_tree(paths.join(folder, "tree"))
    assert bucket.keys(key(folder)) == [key(paths.join(folder, "treetop"))]
    storage.remove_tree(paths.join(folder, "tree"))  # gone already is no error
    assert storage.sizes_below(paths.join(folder, "tree")) == {}


def test_what_others_write_after_a_listing_is_seen(bucket: Bucket, folder: str) -> None:
    storage.write_text(paths.join(folder, "first"), "1")
    assert storage.names(folder) == ["first"]
    bucket.put(key(paths.join(folder, "second")), b"22")
    assert storage.exists(paths.join(folder, "second"))
    assert storage.size(paths.join(folder, "second")) == 2
    assert storage.files_below(folder) == ["first", "second"]
    bucket.put(key(paths.join(folder, "second")), b"333")
    assert storage.size(paths.join(folder, "second")) == 3
    with storage.open_binary(paths.join(folder, "second")) as handle:
        assert handle.read() == b"333"


def test_a_console_s_mark_of_a_folder_is_no_file(bucket: Bucket, folder: str) -> None:
    bucket.put(key(folder) + "/", b"")
    bucket.put(key(folder) + "/inner/", b"")
    storage.write_text(paths.join(folder, "file"), "x")
    assert storage.names(folder) == ["file", "inner"]
    assert storage.files_below(folder) == ["file"]


READERS: dict[str, Callable[[str], object]] = {
    "read": storage.read_bytes,
    "size": storage.size,
    "sha256": storage.sha256,
    "get": lambda uri: storage.get_file(uri, Path("never written")),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("what", ["bucket", "file"])
def test_what_is_not_there_is_told_apart_from_a_storage_that_fails(reader: str, what: str, folder: str) -> None:
    with pytest.raises(FileNotFoundError):
        READERS[reader](MISSING if what == "bucket" else paths.join(folder, "missing"))


def test_a_bucket_that_is_not_there_is_not_made(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "local").write_text("x")
    with refused("SDDP-301", MISSING, "cannot be written", "bucket does not exist", "credentials"):
        storage.write_text(MISSING, "x")
    with refused("SDDP-301", MISSING, "cannot be written"):
        storage.put_file(tmp_path / "local", MISSING)
    storage.make_folder(paths.parent(MISSING))
    names = [found["Name"] for found in bucket.client.list_buckets()["Buckets"]]
    assert bucket.name in names
    assert "no-such-bucket" not in names
    assert not storage.exists(MISSING)
    assert storage.names(MISSING) == []
    storage.remove(MISSING)


ACTIONS: dict[str, Callable[[str], object]] = {
    "written": lambda uri: storage.write_text(uri, "x"),
    "read": storage.read_text,
}


@pytest.mark.parametrize("action", ACTIONS)
def test_a_host_without_credentials_is_told_so(
    action: str, folder: str, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with refused("SDDP-301", folder, f"cannot be {action}", "Unable to locate credentials"):
        ACTIONS[action](paths.join(folder, "file"))


def test_an_endpoint_that_nobody_answers_at_is_named(folder: str, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with refused("SDDP-301", folder, "cannot be read", "http://127.0.0.1:9", "endpoint"):
        storage.read_text(paths.join(folder, "file"))


def test_threads_and_forked_processes_reach_it_too(folder: str) -> None:
    target = paths.join(folder, "file")
    storage.write_text(target, "x")  # the parent's connection and event loop are there before the fork
    with ThreadPoolExecutor(2) as threads:
        assert set(threads.map(storage.read_text, [target] * 4)) == {"x"}
    child = multiprocessing.get_context("fork").Process(target=storage.write_text, args=(target, "from the child"))
    child.start()
    child.join(timeout=60)
    assert child.exitcode == 0
    assert storage.read_text(target) == "from the child"

"""Files are written whole or not at all, and what storage refuses is said in our words."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support.refusals import refused

REPOSITORY = Path(__file__).resolve().parents[3]
SIZE = 1 << 20

# Writes the file again and again, each time filled with another digit, until its input ends.
WRITER = """
import sys, threading
from airflow_provider_sparkddp import storage
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
number = 0
while not ended.is_set():
    storage.write_bytes(sys.argv[1], str(number % 10).encode() * int(sys.argv[2]))
    number += 1
print(number)
"""


def uri(path: Path) -> str:
    return path.as_uri()


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    target = uri(tmp_path / "file")
    storage.write_bytes(target, b"x" * SIZE)
    command = [sys.executable, "-c", WRITER, target, str(SIZE)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": ""}
    seen: set[bytes] = set()
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        while len(seen) < 4 and writer.poll() is None:
            data = storage.read_bytes(target)
            assert len(data) == SIZE
            assert len(set(data)) == 1, "two writes in one file"
            seen.add(data[:1])
        written, _ = writer.communicate()
    assert writer.returncode == 0
    assert int(written) >= 3
    assert storage.names(uri(tmp_path)) == ["file"]


@pytest.mark.parametrize("write", ["write_bytes", "put_file"])
def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    target = tmp_path / "folder" / "file"
    storage.write_bytes(uri(target), b"old")

    def fails(*arguments: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    # The last step before the file would be there: all bytes are written beside it.
    monkeypatch.setattr(Path, "replace", fails)
    with refused("SDDP-301", "cannot be written", "No space left on device", uri(target)):
        if write == "write_bytes":
            storage.write_bytes(uri(target), b"new")
        else:
            storage.put_file(Path(__file__), uri(target))
    assert [path.name for path in target.parent.iterdir()] == ["file"]
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize(
    "action",
    [
        lambda place: storage.write_text(place, "x"),
        lambda place: storage.put_file(Path(__file__), place),
        lambda place: storage.make_folder(place),
    ],
    ids=["write", "put", "folder"],
)
@pytest.mark.parametrize("place", ["below a file", "where nobody may write"])
def test_a_place_that_takes_no_files_is_refused_by_name(
    tmp_path: Path, action: Callable[[str], None], place: str
) -> None:
    (tmp_path / "file").write_text("x")
    # /proc takes no folders, not even from root, and says "no such file" of the one that is to be made.
    target = {"below a file": uri(tmp_path / "file" / "x" / "y"), "where nobody may write": "file:///proc/sparkddp/x"}
    if place == "where nobody may write" and not Path("/proc/self").exists():
        pytest.skip("needs /proc")
    with refused("SDDP-301", "cannot be written", target[place], "owner and rights"):
        action(target[place])


def test_reading_what_is_no_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with refused("SDDP-301", "cannot be read", str(tmp_path / "file" / "below")):
        storage.read_bytes(uri(tmp_path / "file" / "below"))
    with refused("SDDP-301", "cannot be read", "IsADirectoryError"):
        storage.read_bytes(uri(tmp_path))


def test_a_file_that_is_not_there_is_told_apart_from_a_storage_that_fails(tmp_path: Path) -> None:
    missing = uri(tmp_path / "missing")
    readers: list[Callable[[str], object]] = [storage.read_bytes, storage.read_text, storage.size, storage.sha256]
    for read in [*readers, lambda place: storage.get_file(place, tmp_path / "back")]:
        with pytest.raises(FileNotFoundError):
            read(missing)
    assert not storage.exists(missing)
    assert not storage.older_than(missing, 0)
    assert storage.names(missing) == []
    storage.remove(missing)  # gone already is no error


def test_below_a_file_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert storage.names(uri(tmp_path / "file" / "below")) == []


def test_a_folder_is_removed_with_all_below_it_and_nothing_else(tmp_path: Path) -> None:
    for name in ("go/a", "go/deep/er/c", "gone", "stay/a"):
        storage.write_text(uri(tmp_path / name), name)
    (tmp_path / "go" / "empty").mkdir()
    (tmp_path / "go" / "link").symlink_to(tmp_path / "stay")
    storage.remove_tree(uri(tmp_path / "go"))
    storage.remove_tree(uri(tmp_path / "go"))  # gone already is no error
    storage.remove_tree(uri(tmp_path / "gone"))  # one file is a tree too
    assert storage.files_below(uri(tmp_path)) == ["stay/a"]


def test_a_folder_that_another_removes_too_is_gone_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        storage.write_text(uri(tmp_path / "go" / name), name)
    rmtree, met = shutil.rmtree, []

    def loses_a_race(path: str) -> None:
        met.append(path)
        if len(met) == 1:
            (tmp_path / "go" / "a").unlink()
            raise FileNotFoundError(2, "No such file or directory", "a")
        rmtree(path)

    monkeypatch.setattr(shutil, "rmtree", loses_a_race)
    storage.remove_tree(uri(tmp_path / "go"))
    assert len(met) == 2
    assert not (tmp_path / "go").exists()


def test_a_folder_whose_files_come_and_go_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.write_text(uri(tmp_path / "go" / "a"), "a")

    def always_loses(path: str) -> None:
        raise FileNotFoundError(2, "No such file or directory", "b")

    monkeypatch.setattr(shutil, "rmtree", always_loses)
    with refused("SDDP-301", f"{tmp_path}/go", "come and go"):
        storage.remove_tree(uri(tmp_path / "go"))


def test_the_age_of_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    assert not storage.older_than(uri(path), 60)
    os.utime(path, (5, 5))
    assert storage.older_than(uri(path), 60)
    assert storage.modified(uri(path)) == 5
    assert storage.modified(uri(tmp_path / "missing")) is None


def test_a_file_counts_as_young_where_the_storage_cannot_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(self: LocalFileSystem, path: str) -> None:
        raise NotImplementedError

    path = tmp_path / "file"
    path.write_text("x")
    monkeypatch.setattr(LocalFileSystem, "modified", unknown)
    assert not storage.older_than(uri(path), 0)


def test_names_with_spaces_and_letters_of_any_language_are_kept(tmp_path: Path) -> None:
    folder = paths.absolute_uri((tmp_path / "späte flüge").as_uri(), "path")
    storage.write_text(paths.join(folder, "manifest.json"), "x")
    assert (tmp_path / "späte flüge" / "manifest.json").read_text() == "x"
    assert storage.names(folder) == ["manifest.json"]


@pytest.mark.parametrize("path", ["memory://bucket/model", "http://host/model", "model", "/model"])
def test_a_scheme_that_spark_and_python_do_not_share_is_no_path(path: str) -> None:
    with refused("SDDP-107", path):
        paths.absolute_uri(path, "destination")


def test_memory_is_never_written_to() -> None:
    """Each process has its own: what one wrote there, no other would find."""
    before = set(fsspec.filesystem("memory").store)
    with pytest.raises((KeyError, SparkDDPError), match="memory"):
        storage.write_text("memory://bucket/model.json", "x")
    assert set(fsspec.filesystem("memory").store) == before


def test_a_storage_whose_package_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not s3fs, which another test may have loaded already.
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with refused("SDDP-301", "gs://bucket/model", "needs a Python package that is missing", "gcsfs"):
        storage.write_text("gs://bucket/model", "x")

"""Files on shared storage, by absolute URI through fsspec: the one way in which both sides read and write."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError

CHUNK = 1 << 22
TRIES_TO_REMOVE = 5


# Whose put is whole or not at all by itself; elsewhere a file is written and renamed.
OBJECT_STORES = ("s3", "gs", "abfss", "dbfs")


def _protocol(uri: str) -> str:
    return paths.SCHEMES[uri.split("://", 1)[0]][0]


def _filesystem(uri: str) -> tuple[Any, str]:
    import fsspec

    try:
        with _named("reached", uri):
            fs, path = fsspec.core.url_to_fs(paths.fsspec_uri(uri))
            # What fsspec listed a moment ago would hide what others have written since.
            fs.invalidate_cache()
            return fs, str(path)
    except ImportError as error:
        raise SparkDDPError(
            "SDDP-301", f"{uri} needs a Python package that is missing here ({error}).", "Install it on this host."
        ) from error


@contextmanager
def _named(action: str, uri: str) -> Iterator[None]:
    """Errors of storage in our words; a file to read that isn't there stays a FileNotFoundError for the caller."""
    try:
        yield
    except Exception as error:
        # To write, only the place can be missing: a bucket, a mount.
        missing = isinstance(error, FileNotFoundError) and action != "written"
        # Python's own errors but OSError are no storage's; a store's package brings its own (no credentials, no connection).
        foreign = type(error).__module__ != "builtins" and not isinstance(error, SparkDDPError)
        if missing or not (isinstance(error, OSError) or foreign):
            raise
        raise SparkDDPError(
            "SDDP-301", f"{uri} cannot be {action} ({type(error).__name__}: {error}).", _remedy(uri)
        ) from error


def _remedy(uri: str) -> str:
    if _protocol(uri) in OBJECT_STORES:
        return (
            "Check that the bucket exists, and that this host's environment or identity gives an endpoint, a region and "
            "credentials that may read and write it."
        )
    return "Check that the folder exists on every host, its owner and rights, and the space that is left."


def read_bytes(uri: str) -> bytes:
    """Raises FileNotFoundError, or SparkDDPError SDDP-301."""
    fs, path = _filesystem(uri)
    with _named("read", uri):
        return bytes(fs.cat_file(path))


def read_text(uri: str) -> str:
    """Raises FileNotFoundError, or SparkDDPError SDDP-301."""
    return read_bytes(uri).decode("utf-8", errors="replace")


def write_bytes(uri: str, data: bytes) -> None:
    """Write a file whole or not at all; an object store's put is that by itself, elsewhere it is written and renamed.

    Raises:
        SparkDDPError: SDDP-301.
    """
    fs, path = _filesystem(uri)
    with _named("written", uri):
        if _protocol(uri) not in OBJECT_STORES:
            with _staged(fs, path) as staged, fs.open(staged, "wb") as handle:
                handle.write(data)
                if hasattr(handle, "fileno"):
                    handle.flush()
                    os.fsync(handle.fileno())
        else:
            fs.pipe_file(path, data)


@contextmanager
def _staged(fs: Any, path: str) -> Iterator[str]:
    """A name beside the path to write to: it becomes the path when all is written, and goes when that failed."""
    fs.makedirs(paths.parent(path), exist_ok=True)
    staged = f"{path}.{uuid.uuid4().hex}.tmp"
    try:
        yield staged
        _rename(fs, staged, path)
    except BaseException:
        with suppress(OSError):
            fs.rm_file(staged)
        raise


def _rename(fs: Any, source: str, target: str) -> None:
    """Replaces the target in one step where the system can: a reader sees the old or the new, never half."""
    if isinstance(fs.protocol, tuple) and "file" in fs.protocol:
        Path(source).replace(target)
    else:
        fs.mv(source, target)


def write_text(uri: str, text: str) -> None:
    """Write a text file whole or not at all. Raises SparkDDPError SDDP-301."""
    write_bytes(uri, text.encode())


def put_file(local: Path, uri: str) -> None:
    """Copy a local file to storage, whole or not at all. Raises SparkDDPError SDDP-301."""
    fs, path = _filesystem(uri)
    with _named("written", uri):
        if _protocol(uri) not in OBJECT_STORES:
            with _staged(fs, path) as staged:
                fs.put_file(str(local), staged)
        else:
            fs.put_file(str(local), path)


def get_file(uri: str, local: Path) -> None:
    """Copy a file of storage to a local path. Raises FileNotFoundError, or SparkDDPError SDDP-301."""
    fs, path = _filesystem(uri)
    with _named("read", uri):
        fs.get_file(path, str(local))


@contextmanager
def open_binary(uri: str) -> Iterator[IO[bytes]]:
    """Open for reading, with random access. Raises FileNotFoundError, or SparkDDPError SDDP-301."""
    fs, path = _filesystem(uri)
    with _named("read", uri):
        handle = fs.open(path, "rb")
    try:
        yield handle
    finally:
        handle.close()


def exists(uri: str) -> bool:
    fs, path = _filesystem(uri)
    with _named("read", uri):
        return bool(fs.exists(path))


def names(uri: str) -> list[str]:
    """The sorted names of the files in a folder; none if there is no such folder."""
    fs, path = _filesystem(uri)
    try:
        with _named("read", uri):
            found = (str(entry).rstrip("/") for entry in _listed(fs, path))
            # A store's console marks a folder by an empty object of the folder's own name.
            return sorted(entry.rsplit("/", 1)[-1] for entry in found if entry != path.rstrip("/"))
    except FileNotFoundError:
        return []


def _listed(fs: Any, path: str) -> list[Any]:
    try:
        return list(fs.ls(path, detail=False))
    except NotADirectoryError:
        return []  # a file lies where the folder would


def files_below(uri: str) -> list[str]:
    """The sorted names of all files below a folder, relative to it."""
    fs, path = _filesystem(uri)
    with _named("read", uri):
        root = path.rstrip("/") + "/"
        return sorted(str(found).removeprefix(root) for found in fs.find(path) if not str(found).endswith("/"))


def sizes_below(uri: str) -> dict[str, int]:
    """Bytes of all files below a folder, by their names relative to it, from one listing; none if there is no such folder."""
    fs, path = _filesystem(uri)
    with _named("read", uri):
        root = path.rstrip("/") + "/"
        found = fs.find(path, detail=True)
        return {str(name).removeprefix(root): int(facts["size"]) for name, facts in found.items() if name[-1] != "/"}


def make_folder(uri: str) -> None:
    """Raises SparkDDPError SDDP-301. On an object store there is nothing to make."""
    fs, path = _filesystem(uri)
    # s3fs would make a bucket that isn't there, and so hide a misspelt name.
    if _protocol(uri) not in OBJECT_STORES:
        with _named("written", uri):
            fs.makedirs(path, exist_ok=True)


def size(uri: str) -> int:
    """Bytes. Raises FileNotFoundError, or SparkDDPError SDDP-301."""
    fs, path = _filesystem(uri)
    with _named("read", uri):
        return int(fs.size(path))


def modified(uri: str) -> float | None:
    """When a file was last written, in seconds since 1970. None where the storage can't say, and when it is gone."""
    fs, path = _filesystem(uri)
    try:
        with _named("read", uri):
            return float(fs.modified(path).timestamp())
    except (FileNotFoundError, NotImplementedError):
        return None


def older_than(uri: str, seconds: float) -> bool:
    """Whether a file was last written longer ago. False where the storage can't say, and when it is gone."""
    written = modified(uri)
    return written is not None and time.time() - written > seconds


def sha256(uri: str) -> str:
    """SHA-256 of a file's bytes, read in chunks. Raises FileNotFoundError, or SparkDDPError SDDP-301."""
    digest = hashlib.sha256()
    with open_binary(uri) as handle:
        while chunk := handle.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def remove(uri: str) -> None:
    """Remove one file; one that is gone already is no error. Raises SparkDDPError SDDP-301."""
    fs, path = _filesystem(uri)
    try:
        with _named("removed", uri):
            fs.rm_file(path)
    except FileNotFoundError:
        return


def remove_tree(uri: str) -> None:
    """Remove a folder and all below it; what is gone already is no error. Raises SparkDDPError SDDP-301."""
    fs, path = _filesystem(uri)
    for _ in range(TRIES_TO_REMOVE):
        try:
            with _named("removed", uri):
                fs.rm(path, recursive=True)
            return
        except FileNotFoundError:
            # All of it, or one file that another remover was quicker with: then the rest is still there.
            if not exists(uri):
                return
    raise SparkDDPError("SDDP-301", f"{uri} cannot be removed: its files come and go.", "See who else writes there.")

"""Leases: who reads the files of a manifest says so beside it, and who removes them looks there first.

Storage knows no locks that all of its kinds share, so each side writes before it looks:

    a reader    writes `leases/<nonce>.json`, then looks into `removing/`: somebody removes -> SDDP-208
    a remover   writes `removing/<nonce>.json`, then looks into `leases/`: somebody reads -> takes its file back, leaves all

Whichever wrote last sees the other. (Both may see each other: then the reader is refused and nothing is removed.)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec import paths, wire
from airflow_provider_sparkddp.spec.errors import SparkDDPError

# Seconds. A lease that isn't renewed ends: its reader died. Clocks may differ by SKEW.
HOLD, RENEW, SKEW = 15 * 60.0, 2 * 60.0, 10 * 60.0
# So long a remover may take from its announcement to the end; after it readers take it for dead.
REMOVAL = 60 * 60.0
WAIT_FOR_RENEWAL = 30.0

LEASE, TOMBSTONE, USE = "lease", "removing", "used"


@contextmanager
def lease(
    manifest_uri: str, nonce: str, label: str, clock: Callable[[], float] = time.time, renew: float = RENEW
) -> Iterator[None]:
    """Hold a lease while the block reads the manifest and its files.

    Where it can't be written, a line says so and the block reads without.

    Args:
        nonce: of the job that reads.
        label: what a person calls the reader.
        clock, renew: seconds since 1970, and seconds between two renewals.

    Raises:
        SparkDDPError: SDDP-208 when the manifest is being removed.
    """
    held = _told(
        f"no lease on {manifest_uri}, retention would not see this reader", take, manifest_uri, nonce, label, clock
    )
    ended = threading.Event()
    renewing = threading.Thread(
        target=_renew, args=(ended, renew, manifest_uri, nonce, label, clock), name="sparkddp-lease", daemon=True
    )
    try:
        by = _told(f"can't see whether {manifest_uri} is being removed", removers, manifest_uri, clock())
        if by:
            raise _being_removed(manifest_uri, by)
        if held:
            renewing.start()
        yield
    finally:
        ended.set()
        if renewing.is_alive():
            renewing.join(WAIT_FOR_RENEWAL)
        if held:
            with suppress(Exception):  # it ends by itself
                storage.remove(_file(manifest_uri, paths.LEASES, nonce))


def _told(trouble: str, action: Callable[..., Any], *arguments: Any) -> Any:
    """What the action gives; None and a line when storage refuses: a lease is a courtesy, reading is the work."""
    try:
        return action(*arguments)
    except Exception as error:  # of storage, ours and its clients' own
        print(f"sparkddp: {trouble} ({type(error).__name__}: {error})", flush=True)
        return None


def _renew(
    ended: threading.Event, seconds: float, manifest_uri: str, nonce: str, label: str, clock: Callable[[], float]
) -> None:
    while not ended.wait(seconds):
        _told(f"the lease on {manifest_uri} was not renewed", take, manifest_uri, nonce, label, clock)


def _being_removed(manifest_uri: str, by: list[str]) -> SparkDDPError:
    return SparkDDPError(
        "SDDP-208",
        f"{manifest_uri} is being removed by retention ({', '.join(by)}).",
        "Run the partition task again, and give its retention more days than a line takes. If no such removal runs, remove the "
        f"folder {paths.REMOVING} beside the manifest.",
    )


def take(manifest_uri: str, nonce: str, label: str, clock: Callable[[], float]) -> bool:
    """A reader's first step, and each renewal. False where there is no manifest: nothing is written into a foreign folder."""
    if not storage.exists(manifest_uri):
        return False
    text = wire.pack(LEASE, {"until": clock() + HOLD, "label": label})
    storage.write_text(_file(manifest_uri, paths.LEASES, nonce), text)
    return True


def removers(manifest_uri: str, now: float) -> list[str]:
    """A reader's second step: who is removing the manifest, but for those that must have died over it."""
    found = _read(manifest_uri, paths.REMOVING, TOMBSTONE)
    return [facts.get("label", name) for name, facts in found.items() if facts.get("at", now) > now - REMOVAL]


def announce(manifest_uri: str, nonce: str, label: str, now: float) -> None:
    """A remover's first step. Raises SparkDDPError SDDP-301."""
    storage.write_text(_file(manifest_uri, paths.REMOVING, nonce), wire.pack(TOMBSTONE, {"at": now, "label": label}))


def readers(manifest_uri: str, now: float) -> list[str]:
    """A remover's second step: who reads. Raises SparkDDPError SDDP-301."""
    found = _read(manifest_uri, paths.LEASES, LEASE)
    return [facts.get("label", name) for name, facts in found.items() if facts.get("until", now) > now - SKEW]


def withdraw(manifest_uri: str, nonce: str) -> None:
    """A remover's last step when somebody reads. Only its own announcement: another remover may count on its own."""
    storage.remove(_file(manifest_uri, paths.REMOVING, nonce))


def touch(manifest_uri: str, now: float) -> None:
    """Says that the manifest was used again; before `removers` is asked, as with a lease. Raises SparkDDPError SDDP-301."""
    storage.write_text(paths.join(paths.parent(manifest_uri), paths.USED), wire.pack(USE, {"at": now}))


def last_used(manifest_uri: str) -> float | None:
    """When it was written or last used again, in seconds since 1970. None where the storage can't say."""
    written = storage.modified(manifest_uri)
    used = _facts(paths.join(paths.parent(manifest_uri), paths.USED), USE)
    return None if written is None else max(written, (used or {}).get("at", written))


def _file(manifest_uri: str, folder: str, nonce: str) -> str:
    return paths.join(paths.parent(manifest_uri), folder, f"{nonce}.json")


def _read(manifest_uri: str, folder: str, kind: str) -> dict[str, dict[str, Any]]:
    """Name -> what the file says; nothing where it can't be told, and then the file counts: nothing is removed on a guess."""
    below = paths.join(paths.parent(manifest_uri), folder)
    names = [name for name in storage.names(below) if name.endswith(".json")]
    facts = {name: _facts(paths.join(below, name), kind) for name in names}
    return {name: found for name, found in facts.items() if found is not None}


def _facts(uri: str, kind: str) -> dict[str, Any] | None:
    """None when the file is gone, nothing when it isn't whole."""
    try:
        return wire.unpack(kind, storage.read_text(uri), uri)
    except FileNotFoundError:
        return None
    except SparkDDPError as error:
        if error.code == "SDDP-301":
            raise
        return {}

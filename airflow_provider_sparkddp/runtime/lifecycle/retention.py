"""Old partitions go, if the user asks for it: those of this task's earlier runs, unless somebody reads or reuses them."""

from __future__ import annotations

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.lifecycle import tries
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.storage import leases

DAY = 86_400.0


def expire(job: Job, days: float | None, now: float, keep: str = "") -> list[str]:
    """Remove partitions of this same task's other runs that are older than `days`.

    The manifest goes first, so that nobody begins to read what is going; job.json, result.json and logs stay.

    Args:
        days: since the manifest was written or last reused; None removes nothing.
        now: seconds since 1970.
        keep: URI of a manifest that stays whatever its age: the one that was reused.

    Returns:
        Lines for the log. Trouble is such a line, never an error.
    """
    if not days or not job.owner or tries.number(job) is None:
        return []
    try:
        folders = tries.of_other_runs(job)
    except Exception as error:  # of storage, ours and its clients' own
        return [f"retention: earlier runs can't be listed ({type(error).__name__}: {error})"]
    lines = [_tried(job, folder, now - days * DAY, now) for folder in folders if not _is(folder, keep)]
    return [line for line in lines if line]


def _is(folder: str, manifest_uri: str) -> bool:
    return paths.join(folder, paths.MANIFEST) == manifest_uri


def _tried(job: Job, folder: str, before: float, now: float) -> str | None:
    try:
        return _expire(job, folder, before, now)
    except Exception as error:  # of storage, ours and its clients' own
        return f"retention: {folder} stays ({type(error).__name__}: {error})"


def _expire(job: Job, folder: str, before: float, now: float) -> str | None:
    uri = paths.join(folder, paths.MANIFEST)
    if not storage.exists(uri):
        # Without a manifest: a try that runs or failed is not ours to touch; what a remover that died left is.
        if not storage.names(paths.join(folder, paths.REMOVING)) or not _of_another_run(job, folder):
            return None
        _remove(folder)
        return f"retention: removed what an earlier removal had left of {folder}"
    if not _older(uri, before) or not _of_another_run(job, folder):
        return None
    return removed(uri, job, before, now)


def removed(uri: str, job: Job, before: float, now: float) -> str:
    """Announce, look who reads, then remove or leave: the remover's side of the protocol in storage/leases.py."""
    folder = paths.parent(uri)
    leases.announce(uri, job.nonce, job.label, now)
    try:
        reading = leases.readers(uri, now)
        stays = bool(reading) or not _older(uri, before)
    except BaseException:
        leases.withdraw(uri, job.nonce)
        raise
    if stays:
        leases.withdraw(uri, job.nonce)
        return f"retention: {folder} stays, it is read by {', '.join(reading) or 'a task that reuses it'}"
    _remove(folder)
    return f"retention: removed the partitions in {folder}"


def _older(uri: str, before: float) -> bool:
    used = leases.last_used(uri)
    return used is not None and used < before


def _of_another_run(job: Job, folder: str) -> bool:
    found = tries.stored_job(folder)
    return found is not None and found.owner != job.owner and paths.same_task(found.owner, job.owner)


def _remove(folder: str) -> None:
    storage.remove(paths.join(folder, paths.MANIFEST))
    storage.remove_tree(paths.join(folder, paths.DATA))
    storage.remove_tree(paths.join(folder, paths.LEASES))
    storage.remove(paths.join(folder, paths.USED))
    # Last: as long as it lies there the next retention goes on where this one died.
    storage.remove_tree(paths.join(folder, paths.REMOVING))

"""What failed tries and lost attempts left behind goes once a manifest is committed. job.json, result.json and logs stay."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.lifecycle import tries
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.manifests import Manifest

SHOWN = 3


def clean(job: Job, manifest: Manifest) -> list[str]:
    """Remove the data of this task instance's failed tries, and what lies in this try's data folder and isn't in its manifest.

    Another DAG run's try may lie beside this one and still run: only folders whose job.json names the same owner are touched.

    Returns:
        Lines for the log. Trouble with cleaning is such a line, never an error.
    """
    folder = paths.join(job.directory, paths.DATA)
    lines = _tried(f"failed tries beside {job.directory}", lambda: _failed_tries(job))
    return lines + _tried(folder, lambda: _unlisted(folder, {file.name for file in manifest.files}))


def _tried(what: str, action: Callable[[], list[str]]) -> list[str]:
    try:
        return action()
    except Exception as error:  # of storage, ours and its clients' own
        return [f"cleaning: {what} stays ({type(error).__name__}: {error})"]


def _failed_tries(job: Job) -> list[str]:
    found = [paths.join(folder, paths.DATA) for folder in tries.failed(job)]
    return [line for data in found for line in _tried(data, partial(_removed, data))]


def _removed(data: str) -> list[str]:
    if not storage.names(data):
        return []
    storage.remove_tree(data)
    return [f"cleaning: removed {data}, left by a try that failed"]


def _unlisted(folder: str, listed: set[str]) -> list[str]:
    """Markers, checksums and temporary folders of the writer, files of attempts that lost against another."""
    wanted = {name.removeprefix(f"{paths.DATA}/") for name in listed}
    found = storage.files_below(folder) if storage.names(folder) else []
    if not wanted <= set(found):
        return []  # a reused manifest, whose files lie elsewhere
    kept = {name.split("/")[0] for name in wanted}
    for name in storage.names(folder):
        if name not in kept:
            storage.remove_tree(paths.join(folder, name))
    surplus = [name for name in found if name not in wanted]
    for name in surplus:
        if name.split("/")[0] in kept:
            storage.remove(paths.join(folder, name))
    lost = [name for name in surplus if not name.rpartition("/")[2].startswith((".", "_"))]
    more = ", …" if len(lost) > SHOWN else ""
    return [f"cleaning: removed {len(lost)} files of lost attempts: {', '.join(lost[:SHOWN])}{more}"] if lost else []

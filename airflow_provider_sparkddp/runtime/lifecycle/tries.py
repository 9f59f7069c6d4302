"""The folders of other tries: who wrote them is said by their job.json, never by their place alone."""

from __future__ import annotations

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec import jobs, paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job


def number(job: Job) -> int | None:
    """The number of this job's try. None of a replay, whose folder is not a try's."""
    return paths.try_number(job.directory.rpartition("/")[2])


def failed(job: Job) -> list[str]:
    """Folders of this task instance's own earlier tries that left no manifest. Raises SparkDDPError SDDP-301."""
    mine = number(job)
    if mine is None or not job.owner:
        return []
    lower = [folder for folder in _tries(paths.parent(job.directory)) if _number(folder) < mine]
    theirs = [folder for folder in lower if (found := stored_job(folder)) and found.owner == job.owner]
    return [folder for folder in theirs if not storage.exists(paths.join(folder, paths.MANIFEST))]


def of_other_runs(job: Job) -> list[str]:
    """Where tries of this task in other DAG runs would lie; whose they are is for `stored_job` to say.

    With the default run_dir each run has a folder of its own beside this one's; with one that the user set they lie beside this try.

    Raises:
        SparkDDPError: SDDP-301.
    """
    mapped = paths.parent(job.directory)
    if job.settings.get("run_dir"):
        return [folder for folder in _tries(mapped) if folder != job.directory]
    task = paths.parent(mapped)
    run = paths.parent(task)
    below = mapped.removeprefix(run).strip("/")
    others = [name for name in storage.names(paths.parent(run)) if name != run.rpartition("/")[2]]
    return [folder for name in others for folder in _tries(paths.join(paths.parent(run), name, below))]


def stored_job(folder: str) -> Job | None:
    """The partition job that wrote the folder. None when it says nothing whole, is of another kind, or was copied from elsewhere."""
    uri = paths.join(folder, paths.JOB)
    try:
        job = Job.from_text(storage.read_text(uri), uri)
    except (FileNotFoundError, SparkDDPError, KeyError, TypeError):
        return None
    return job if job.kind == jobs.PARTITION and job.directory == folder else None


def _tries(folder: str) -> list[str]:
    return [paths.join(folder, name) for name in storage.names(folder) if paths.try_number(name) is not None]


def _number(folder: str) -> int:
    return paths.try_number(folder.rpartition("/")[2]) or 0

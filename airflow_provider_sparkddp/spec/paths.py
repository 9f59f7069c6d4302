"""Where everything lies. File names are decided here and nowhere else.

A run directory holds, for each task: `<task>/<map index>/<try>-<nonce>/` with job.json, result.json, progress/, logs/,
failures/, probe/, data/ or model/; beside a manifest also who reads it and when it was last reused. A bare path
means one thing to Spark (`fs.defaultFS`) and another to fsspec, so paths are absolute URIs.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from dataclasses import dataclass
from urllib.parse import unquote

from airflow_provider_sparkddp.spec.errors import SparkDDPError

# scheme as the user writes it -> (fsspec protocol, Hadoop scheme)
SCHEMES: dict[str, tuple[str, str]] = {
    "file": ("file", "file"),
    "s3": ("s3", "s3a"),
    "s3a": ("s3", "s3a"),
    "gs": ("gs", "gs"),
    "abfss": ("abfss", "abfss"),
    "hdfs": ("hdfs", "hdfs"),
    "dbfs": ("dbfs", "dbfs"),
}

JOB = "job.json"
RESULT = "result.json"
MANIFEST = "manifest.json"
DATA = "data"
MODEL = "model"
PROGRESS = "progress"
LOGS = "logs"
PROFILER = "profiler"
FAILURES = "failures"
PROBE = "probe"
CODE = "code"
# Beside a manifest: who reads it, who is about to remove it, when it was last reused.
LEASES = "leases"
REMOVING = "removing"
USED = "used.json"
# Below the storage root: fingerprint of a source, settings and code -> the manifest that was made of them.
PARTITIONS = "partitions"
CURRENT = "current.json"


def slug(text: str, limit: int = 60) -> str:
    """A name that is safe in every path, and injective: two different texts never share one.

    Hadoop refuses a relative segment with a colon, and Airflow's run ids hold colons and plus signs.
    """
    clean = re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:limit].lstrip("._")
    # Spark silently skips files whose names begin with `_` or `.`; and a lossy name needs the hash to stay injective.
    if clean and clean == text and not re.search(r"-[0-9a-f]{10}$", text):
        return clean
    return f"{clean or 'x'}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def absolute_uri(path: str, what: str) -> str:
    """The path as a URI without a trailing slash.

    Raises:
        SparkDDPError: SDDP-107 when it has no known scheme or is relative.
    """
    path = path.strip()
    scheme, _, rest = path.partition(":")
    if not rest or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        raise SparkDDPError(
            "SDDP-107",
            f"{what}={path!r} has no scheme: Spark and Python would look in different places.",
            f"Write an absolute URI, for example {what}='file:///shared/sparkddp' or 's3://bucket/prefix'.",
        )
    scheme = scheme.lower()
    if scheme not in SCHEMES:
        raise SparkDDPError(
            "SDDP-107",
            f"{what}={path!r} has the scheme {scheme!r}.",
            f"Write an absolute URI with one of: {', '.join(SCHEMES)}.",
        )
    if scheme == "file":
        return _local_uri(path, rest, what)
    if not rest.startswith("//") or rest.strip("/") == "":
        raise SparkDDPError(
            "SDDP-107",
            f"{what}={path!r} names no place after {scheme}://.",
            f"Write two slashes after the colon, for example {what}='{scheme}://bucket/prefix'.",
        )
    _refuse_parents(path, rest, what)
    return f"{scheme}:{rest.rstrip('/')}"


def _local_uri(path: str, rest: str, what: str) -> str:
    """One spelling of local paths everywhere: no percent-encoding, three slashes."""
    local = unquote(rest.removeprefix("//localhost"))
    slashes = len(local) - len(local.lstrip("/"))
    if slashes not in (1, 3):
        raise SparkDDPError(
            "SDDP-107", f"{what}={path!r} is not an absolute path.", "Write file:///absolute/path, with three slashes."
        )
    if set("%?#") & set(local):
        # What is read twice must mean the same twice, and Spark, fsspec and Python read these three differently.
        raise SparkDDPError("SDDP-107", f"{what}={path!r} holds '%', '?' or '#'.", "Choose a folder without them.")
    _refuse_parents(path, local, what)
    return "file://" + posixpath.normpath("/" + local.lstrip("/"))


def _refuse_parents(path: str, rest: str, what: str) -> None:
    if ".." in rest.split("/"):
        raise SparkDDPError("SDDP-107", f"{what}={path!r} holds '..'.", "Write the path without '..'.")


def join(base: str, *names: str) -> str:
    return "/".join([base.rstrip("/"), *names])


def parent(uri: str) -> str:
    return uri.rstrip("/").rsplit("/", 1)[0]


def fsspec_uri(uri: str) -> str:
    """The URI as fsspec wants it."""
    scheme, rest = uri.split("://", 1)
    return f"{SCHEMES[scheme][0]}://{rest}"


def hadoop_uri(uri: str) -> str:
    """The URI as Hadoop, and so Spark, wants it: `s3` becomes `s3a`. Hadoop's Path does its own encoding."""
    scheme, rest = uri.split("://", 1)
    return f"{SCHEMES[scheme][1]}://{rest}"


def _mapped(map_index: int) -> str:
    return "unmapped" if map_index < 0 else str(map_index)


def rank_log(folder: str, rank: int) -> str:
    """A rank's whole log, in the try's folder of logs."""
    return join(folder, f"rank-{rank:05d}.log")


def event_name(number: int) -> str:
    """How the training goes, as rank 0 tells it, in the folder of progress. Numbers from 1."""
    return f"{number:06d}.json"


def notice_name(rank: int, number: int) -> str:
    """A rank's warning or error, in the folder of progress."""
    return f"rank-{rank:05d}-{number:06d}.json"


@dataclass(frozen=True)
class TryDir:
    """The folder of one try of one task: nothing else is ever written there."""

    uri: str
    nonce: str

    @classmethod
    def of(cls, run_dir: str, task_id: str, map_index: int, try_number: int, nonce: str) -> TryDir:
        return cls(join(run_dir, slug(task_id), _mapped(map_index), f"{try_number}-{nonce}"), nonce)

    def file(self, *names: str) -> str:
        return join(self.uri, *names)


def try_number(name: str) -> int | None:
    """The number of a try, from its folder's name `<try>-<nonce>`; None of any other name."""
    found = re.fullmatch(r"([0-9]+)-[0-9A-Za-z]+", name)
    return int(found.group(1)) if found else None


def owner(dag_id: str, run_id: str, task_id: str, map_index: int) -> str:
    """Names a task instance, the same for all of its tries; injective, as its parts are."""
    return "/".join([slug(dag_id), slug(run_id), slug(task_id), _mapped(map_index)])


def same_task(one: str, other: str) -> bool:
    """Whether two owners are the same task, in whatever DAG runs. An empty owner is nobody's."""
    mine, theirs = one.split("/"), other.split("/")
    return len(mine) == len(theirs) == 4 and [mine[0], *mine[2:]] == [theirs[0], *theirs[2:]]


def default_run_dir(storage_root: str, dag_id: str, run_id: str) -> str:
    return join(absolute_uri(storage_root, "[sparkddp] storage_root"), slug(dag_id), slug(run_id))

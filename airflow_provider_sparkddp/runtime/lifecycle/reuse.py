"""The earlier manifest again, where source, settings and code are unchanged: then nothing is written.

`<storage root>/partitions/<fingerprint>/current.json` names the manifest, which lies with its files in the folder of the try that
wrote it. Two runs at once write both; the pointer that is put last wins, and the other's result stays as valid.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

from airflow_provider_sparkddp import __version__, storage
from airflow_provider_sparkddp.runtime.sources.state import source_state
from airflow_provider_sparkddp.spec import paths, wire
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.spec.manifests import Manifest
from airflow_provider_sparkddp.storage import leases
from airflow_provider_sparkddp.storage.manifests import read_manifest

POINTER = "current"
# Settings that say nothing of the rows in the files or of who reads which. (Drift is told of any manifest, also of a reused one.)
NOT_OUTPUT = (
    "reuse",
    "fingerprint",
    "retention",
    "executors_timeout",
    "cpus_per_rank",
    "run_dir",
    "storage_root",
    "compare_with",
    "drift",
)
# Of Spark's own settings those of SQL decide what is read and written; this one is a place.
SQL, NOT_SQL = "spark.sql.", "spark.sql.warehouse.dir"


def fingerprint(spark: Any, job: Job, frame: Any) -> str:
    """SHA-256 over all that decides on the output: the source's state, the settings, Spark's, and the code.

    Args:
        frame: the source as it was read, before columns and rows are chosen.

    Raises:
        SparkDDPError: SDDP-101 when the source's state can't be told and the user gave no fingerprint.
    """
    settings = {name: value for name, value in job.settings.items() if name not in NOT_OUTPUT}
    given = job.settings.get("fingerprint")
    state = {
        "source": {"given": given} if given else source_state(spark, job.settings["source"], frame),
        "schema": frame.schema.jsonValue(),
        "settings": settings,
        "spark": [spark.version, _sql_settings(spark)],
        "provider": __version__,
        "code": [ref.sha256 for ref in job.code],
    }
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _sql_settings(spark: Any) -> dict[str, str]:
    """What the application was started with; what this job sets for itself meanwhile is its code's affair."""
    found = spark.sparkContext.getConf().getAll()
    return {key: value for key, value in found if key.startswith(SQL) and key != NOT_SQL}


def earlier(job: Job, fingerprint: str, clock: Callable[[], float] = time.time) -> tuple[str, Manifest] | None:
    """The manifest that was published under the fingerprint, with its URI, if it is whole and its files lie there.

    It counts as used now, so that retention lets it be. Otherwise None, and a line says why.
    """
    try:
        uri = _current(job, fingerprint)
        if uri is None:
            print(
                "sparkddp: nothing to reuse: no partitions of this source with these settings and this code", flush=True
            )
            return None
        return uri, _whole(uri, clock)
    except Exception as error:  # whatever is wrong with it: then it is written anew
        reason = error.message if isinstance(error, SparkDDPError) else f"{type(error).__name__}: {error}"
        print(f"sparkddp: the earlier partitions are not reused: {reason}", flush=True)
        return None


def _whole(uri: str, clock: Callable[[], float]) -> Manifest:
    """Raises SparkDDPError SDDP-208 and SDDP-209 when it can't be relied on."""
    read_manifest(uri)  # nothing is written into a folder without one
    leases.touch(uri, clock())
    if removers := leases.removers(uri, clock()):
        raise SparkDDPError("SDDP-208", f"{uri} is being removed by retention ({', '.join(removers)}).", "Wait.")
    # Read after the look: what is whole now stays.
    manifest = read_manifest(uri)
    lying = storage.sizes_below(paths.join(paths.parent(uri), paths.DATA))
    for file in manifest.files:
        size = lying.get(file.name.removeprefix(f"{paths.DATA}/"))
        if size != file.bytes:
            found = "is missing" if size is None else f"has {size} bytes, not {file.bytes}"
            raise SparkDDPError("SDDP-209", f"{file.name} of {uri} {found}.", "Partition again.")
    return manifest


def publish(job: Job, fingerprint: str, manifest_uri: str) -> list[str]:
    """Name the manifest as the one to reuse; call it when the manifest is committed.

    Returns:
        Lines for the log. Trouble is such a line: the partitions are good, only the next run will write its own.
    """
    try:
        storage.write_text(_pointer(job, fingerprint), wire.pack(POINTER, {"manifest": manifest_uri}))
    except Exception as error:  # of storage, ours and its clients' own
        return [f"reuse: these partitions can't be reused ({type(error).__name__}: {error})"]
    return []


def _current(job: Job, fingerprint: str) -> str | None:
    uri = _pointer(job, fingerprint)
    try:
        return paths.absolute_uri(wire.unpack(POINTER, storage.read_text(uri), uri)["manifest"], "manifest")
    except FileNotFoundError:
        return None


def _pointer(job: Job, fingerprint: str) -> str:
    root = paths.absolute_uri(job.settings["storage_root"], "[sparkddp] storage_root")
    return paths.join(root, paths.PARTITIONS, fingerprint, paths.CURRENT)

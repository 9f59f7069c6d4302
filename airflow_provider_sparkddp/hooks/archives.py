"""Packed environments: Spark unpacks them in each executor's working directory, and executors run the Python that one holds."""

from __future__ import annotations

import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.arguments import UNKNOWN, convert, is_empty
from airflow_provider_sparkddp.spec.errors import SparkDDPError

EXECUTORS_PYTHON, DRIVERS_PYTHON = "spark.pyspark.python", "spark.pyspark.driver.python"
# By these ends of a name Spark knows what to unpack; anything else it only copies.
TARS, ZIPS = (".tar.gz", ".tgz", ".tar"), (".zip", ".jar")
# The name that Spark's own documentation gives it: an archive that is called so is meant to hold an interpreter.
ENVIRONMENT = "environment"
INTERPRETER = "bin/python"
_PACK = (
    "Pack the environment's own contents, as venv-pack and conda-pack do, or tar -czf environment.tar.gz -C FOLDER ."
)


@dataclass(frozen=True)
class Archive:
    """One entry.

    Attributes:
        uri: as Spark takes it, with `#alias`.
        alias: folder below an executor's working directory.
        python: whether it holds an interpreter; of one on other storage only its alias tells.
        version: of the interpreter, such as "3.11", where a name in it says so.
    """

    uri: str
    alias: str
    python: bool
    version: str | None = None


def entries(value: Any) -> list[str]:
    """The argument as a list: one text with commas, as spark-submit takes it, or a list; none of what isn't known yet.

    Raises:
        SparkDDPError: SDDP-101.
    """
    if value is UNKNOWN or is_empty(value):
        return []
    listed = convert("archives", value, "name_or_names")
    return [part.strip() for each in listed for part in each.split(",") if part.strip()]


def located(listed: Sequence[str], beside: Path) -> list[Archive]:
    """Where each lies and what it holds; local ones are looked into.

    Args:
        beside: folder of the DAG file, for relative paths.

    Raises:
        SparkDDPError: SDDP-113 for one that is missing, isn't whole, or that Spark wouldn't unpack; SDDP-107 for a wrong URI.
    """
    found = [_located(entry, beside) for entry in listed]
    doubled = {each.alias for each in found if [other.alias for other in found].count(each.alias) > 1}
    if doubled:
        raise _unusable(
            f"two archives are unpacked as {sorted(doubled)[0]!r}", "Give each a name of its own after '#'."
        )
    return found


def _located(entry: str, beside: Path) -> Archive:
    place, _, alias = entry.partition("#")
    name = PurePosixPath(urlsplit(place).path if "://" in place else place).name
    if not name.lower().endswith((*TARS, *ZIPS)):
        raise _unusable(
            f"archives entry {entry!r} is of a kind that Spark does not unpack",
            f"Give one that ends in {', '.join((*TARS, *ZIPS))}.",
        )
    alias = alias or name
    scheme = urlsplit(place).scheme
    if scheme not in ("", "file"):
        uri = paths.hadoop_uri(paths.absolute_uri(place, "archives")) if scheme in paths.SCHEMES else place
        return Archive(f"{uri}#{alias}", alias, python=alias == ENVIRONMENT)
    local = paths.absolute_uri(place, "archives").removeprefix("file://") if scheme else place
    path = Path(local) if Path(local).is_absolute() else beside / local
    if not path.is_file():
        raise _unusable(
            f"archives entry {entry!r} does not exist (looked for {path})", "Relative ones lie beside the DAG file."
        )
    python, version = _interpreter(path)
    return Archive(f"{path}#{alias}", alias, python, version)


def _interpreter(path: Path) -> tuple[bool, str | None]:
    """Whether the archive holds an interpreter, and of which version."""
    python, version, nested = False, None, None
    for name in _names(path):
        parts = PurePosixPath(name).parts
        python = python or parts == ("bin", "python")
        nested = nested or (name if parts[1:] == ("bin", "python") else None)
        if parts[:1] == ("lib",) and len(parts) > 1 and parts[1].startswith("python3."):
            version = parts[1].removeprefix("python")
        if python and version:
            break  # the rest may be gigabytes
    if nested and not python:
        raise _unusable(f"the interpreter of {path} lies in {nested}, and Spark looks for {INTERPRETER}", _PACK)
    return python, version


def _names(path: Path) -> Iterator[str]:
    """Of the files in the archive, in their order, without a leading `./`."""
    try:
        if path.name.lower().endswith(ZIPS):
            with zipfile.ZipFile(path) as zipped:
                yield from zipped.namelist()
        else:
            with tarfile.open(path) as packed:
                for member in packed:
                    yield member.name.removeprefix("./")
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError, zlib.error) as error:
        raise _unusable(f"{path} is not a whole archive ({type(error).__name__}: {error})", "Pack it again.") from error


def settings(
    found: Sequence[Archive], master: str, conf: Mapping[str, Any], variables: Mapping[str, Any]
) -> dict[str, str]:
    """What the archives add to the Spark configuration: the executors' Python, unless the user named one.

    Args:
        conf: the user's own.
        variables: the user's env_vars.

    Raises:
        SparkDDPError: SDDP-113 where no executor would run what was packed, or could.
    """
    if found and master.startswith("local"):
        raise _unusable(
            f"archives is set, and the master is {master}: there ranks run in the Airflow worker's own interpreter",
            "Leave archives out here: install the packages on the Airflow worker, or unpack the environment and set "
            f"conf={{'{EXECUTORS_PYTHON}': '/…/{INTERPRETER}'}}.",
        )
    chosen = conf.get(EXECUTORS_PYTHON) or variables.get("PYSPARK_PYTHON")
    if chosen:
        _require_unpacked(found, str(chosen))
        return {}
    holding = [each for each in found if each.python]
    if len(holding) > 1:
        raise _unusable(
            f"the archives {', '.join(each.alias for each in holding)} each hold an interpreter",
            f"Name one: conf={{'{EXECUTORS_PYTHON}': './{holding[0].alias}/{INTERPRETER}'}}.",
        )
    if any(each.alias == ENVIRONMENT and not each.python for each in found):
        raise _unusable(f"the archive that is unpacked as {ENVIRONMENT!r} holds no {INTERPRETER}", _PACK)
    if not holding:
        return {}
    if DRIVERS_PYTHON not in conf:
        _require_version(holding[0])
    return {EXECUTORS_PYTHON: f"./{holding[0].alias}/{INTERPRETER}"}


def _require_unpacked(found: Sequence[Archive], chosen: str) -> None:
    """A relative interpreter lies in an archive."""
    folder = PurePosixPath(chosen).parts[0]
    if found and "/" in chosen and not chosen.startswith("/") and folder not in [each.alias for each in found]:
        raise _unusable(
            f"{EXECUTORS_PYTHON}={chosen!r} lies in none of the archives ({', '.join(each.alias for each in found)})",
            f"Leave it out, or name an archive's folder: './{found[0].alias}/{INTERPRETER}'.",
        )


def _require_version(archive: Archive) -> None:
    drivers = f"{sys.version_info.major}.{sys.version_info.minor}"
    if archive.version and archive.version != drivers:
        raise _unusable(
            f"the archive {archive.alias} holds Python {archive.version}, and the driver runs {drivers}: Spark wants the same",
            f"Pack an environment of Python {drivers}.",
        )


def _unusable(what: str, remedy: str) -> SparkDDPError:
    return SparkDDPError("SDDP-113", f"{what}.", remedy)

"""Code as zips named by their content: the provider's cluster side, and what the DAG author gives in py_files."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import airflow_provider_sparkddp
from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.hooks import wheels
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import CodeRef

PACKAGE = Path(airflow_provider_sparkddp.__file__).parent
ENTRY = PACKAGE / "runtime" / "entry" / "sparkddp_main.py"
_CLUSTER_SIDE = ("spec", "storage", "runtime")
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class CodeZip:
    """A zip in memory, and the top-level modules in it."""

    data: bytes
    modules: tuple[str, ...]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def name(self) -> str:
        return f"{self.sha256[:16]}.zip"


def provider_zip() -> CodeZip:
    """The provider's cluster side: spec, storage and runtime; nothing of Airflow's side."""
    files = [PACKAGE / "__init__.py"]
    for room in _CLUSTER_SIDE:
        files += _sources(PACKAGE / room)
    return _zipped({str(Path(PACKAGE.name) / f.relative_to(PACKAGE)): f for f in files})


def user_zips(py_files: Sequence[str], beside: Path) -> list[CodeZip]:
    """A zip for each entry: a file, a zip, a pure Python wheel, a package, or a folder whose contents go on the path.

    Args:
        beside: folder of the DAG file, for relative paths.

    Raises:
        SparkDDPError: SDDP-108 for what isn't there, isn't Python, or would hide the provider.
    """
    zips = [_user_zip(entry, beside) for entry in py_files]
    for entry, made in zip(py_files, zips, strict=True):
        if PACKAGE.name in made.modules:
            raise SparkDDPError("SDDP-108", f"py_files entry {entry!r} holds {PACKAGE.name} itself.", "Take it out.")
    return zips


def _user_zip(entry: str, beside: Path) -> CodeZip:
    if urlsplit(entry).scheme == "file":
        entry = paths.absolute_uri(entry, "py_files").removeprefix("file://")
    path = Path(entry) if Path(entry).is_absolute() else beside / entry
    if path.is_dir():
        found = {str(f.relative_to(path)): f for f in _sources(path)}
        if not any(name.endswith(".py") for name in found):
            raise SparkDDPError(
                "SDDP-108", f"py_files folder {path} holds no Python file.", "Name the folder above the code."
            )
        # A package is imported by its own name, so it keeps it; of another folder the contents go on the path.
        inside = f"{path.resolve().name}/" if (path / "__init__.py").exists() else ""
        return _zipped({inside + name: file for name, file in found.items()})
    if not path.is_file():
        raise SparkDDPError(
            "SDDP-108",
            f"py_files entry {entry!r} does not exist (looked for {path}).",
            "Relative ones lie beside the DAG file.",
        )
    if path.suffix == ".py":
        return _zipped({path.name: path})
    return _packed(path)


def _packed(path: Path) -> CodeZip:
    """A zip or a wheel, as it is."""
    names = []
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    wheels.refuse_other_kinds(path, names)
    if not names:
        raise SparkDDPError(
            "SDDP-108", f"py_files entry {path} is neither a .py file, a zip, a wheel nor a folder.", "Zip it."
        )
    if path.suffix == ".whl":
        wheels.require_pure(path, names)
        names = wheels.without_metadata(names)
    return CodeZip(path.read_bytes(), _top_level(names))


def _sources(folder: Path) -> list[Path]:
    """The files below a folder, without caches, hidden ones, and compiled ones, in a stable order."""
    found = (f for f in folder.rglob("*") if f.is_file() and f.suffix != ".pyc")
    return sorted(
        f for f in found if not any(part.startswith((".", "__pycache__")) for part in f.relative_to(folder).parts)
    )


def _zipped(files: dict[str, Path]) -> CodeZip:
    """The same files give the same bytes: no times, a fixed order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), files[name].read_bytes(), zipfile.ZIP_DEFLATED)
    return CodeZip(buffer.getvalue(), _top_level(files))


def _top_level(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name.split("/")[0].removesuffix(".py") for name in names if name.endswith(".py")}))


def store(run_dir: str, made: CodeZip) -> CodeRef:
    """Put a zip in the run directory, once. Raises SparkDDPError SDDP-301."""
    uri = paths.join(run_dir, paths.CODE, made.name)
    if not storage.exists(uri):
        storage.write_bytes(uri, made.data)
    return CodeRef(uri, made.sha256, made.modules)

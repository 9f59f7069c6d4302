"""Built distributions in py_files: a pure Python wheel goes on the path as it is; what a zip on the path can't give is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from airflow_provider_sparkddp.spec.errors import SparkDDPError

COMPILED = (".so", ".pyd", ".dylib", ".dll")
SDISTS = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar")
_BUILD = "Build a wheel of it (pip wheel --no-deps SOURCE) and give that."
_PACK = "Install it into an environment that is packed, and give that by archives (docs/how-to/environments.md)."


def refuse_other_kinds(path: Path, names: Sequence[str]) -> None:
    """Raises SparkDDPError SDDP-108 for eggs and source distributions.

    Args:
        names: of the files in it, where it is a zip.
    """
    if path.suffix == ".egg" or "EGG-INFO/PKG-INFO" in names:
        raise SparkDDPError("SDDP-108", f"py_files entry {path} is an egg, which pip no longer installs.", _BUILD)
    packed_source = any(re.fullmatch(r"[^/]+/PKG-INFO", name) for name in names)
    if path.name.endswith(SDISTS) or packed_source:
        raise SparkDDPError("SDDP-108", f"py_files entry {path} is a source distribution or a tar archive.", _BUILD)


def require_pure(path: Path, names: Sequence[str]) -> None:
    """Raises SparkDDPError SDDP-108 for a wheel that must be installed: Python imports no compiled code from a zip.

    Args:
        names: of the files in the wheel.
    """
    compiled = [name for name in names if name.endswith(COMPILED) or re.search(r"\.so\.[\d.]+$", name)]
    if compiled or not path.stem.endswith("-none-any"):
        why = f"holds compiled code ({compiled[0]})" if compiled else "is built for one platform or Python"
        raise SparkDDPError("SDDP-108", f"the wheel {path} in py_files {why}.", _PACK)
    placed = [name for name in names if re.match(r"[^/]+\.data/(purelib|platlib|data|headers)/", name)]
    if placed:
        raise SparkDDPError(
            "SDDP-108",
            f"the wheel {path} in py_files holds files that only installing puts in place ({placed[0]}).",
            _PACK,
        )


def without_metadata(names: Sequence[str]) -> list[str]:
    """The files of a wheel that are imported: neither its *.dist-info nor the scripts in its *.data."""
    return [name for name in names if not name.split("/")[0].endswith((".dist-info", ".data"))]

"""The partition task's XCom: it lies in Airflow's database, so what would be large is left to the manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec.manifests import Manifest

LIMIT = 48 << 10
# For what the operator adds, such as references to the code of py_files.
ROOM = 8 << 10


def values(
    manifest: Manifest, uri: str, *, reused: bool = False, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The job's values, below LIMIT - ROOM bytes as JSON.

    Where they would be larger, the names of files are left out, then the rows of each rank, then the largest of `more`; what
    is left out is empty, and "files_in_manifest" says that the manifest has the names. A training needs "manifest" alone.

    Args:
        uri: of the manifest.
        reused: whether the manifest is an earlier run's.
        more: plain values to add.
    """
    found = {
        "manifest": uri,
        "files": [file.name for file in manifest.files],
        "files_in_manifest": False,
        "num_files": len(manifest.files),
        "rows": {split: manifest.rank_rows(split) for split in manifest.shares},
        "total_rows": {split: manifest.rows(split) for split in manifest.shares},
        "bytes": sum(file.bytes for file in manifest.files),
        "num_nodes": manifest.num_nodes,
        "devices": manifest.devices,
        "reused": reused,
        **(more or {}),
    }
    large = sorted((name for name, value in (more or {}).items() if value), key=lambda name: -size(found[name]))
    for name in ("files", "rows", *large):
        if size(found) < LIMIT - ROOM:
            break
        found[name] = type(found[name])() if isinstance(found[name], (list, dict, str)) else None
        found["files_in_manifest"] = True
    return found


def size(value: Any) -> int:
    """Bytes of the value as JSON in UTF-8."""
    return len(json.dumps(value).encode())

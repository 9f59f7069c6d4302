"""Reading a manifest from storage, on both sides."""

from __future__ import annotations

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import Manifest


def read_manifest(uri: str) -> Manifest:
    """Raises SparkDDPError SDDP-208 when it is missing or was changed, SDDP-306 for another protocol."""
    try:
        return Manifest.from_text(storage.read_text(uri), uri)
    except FileNotFoundError:
        raise SparkDDPError(
            "SDDP-208", f"the manifest {uri} does not exist.", "Check the path, or run the partition task again."
        ) from None

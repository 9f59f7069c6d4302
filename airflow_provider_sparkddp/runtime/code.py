"""The code that a job brings: zips named by their content, put on the path."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import CodeRef


def activate(code: Sequence[CodeRef]) -> list[str]:
    """Put each zip on `sys.path`, before installed packages; their local paths.

    Raises:
        SparkDDPError: SDDP-108 when a zip is missing or isn't what the job says.
    """
    scratch = Path(tempfile.mkdtemp(prefix="sparkddp-code-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    local = [_fetched(ref, scratch) for ref in code]
    # The first in the list is the provider's own: it stays first, so that no module of a user's can hide it.
    sys.path[:0] = local
    return local


def _fetched(ref: CodeRef, scratch: Path) -> str:
    target = scratch / ref.uri.rsplit("/", 1)[-1]
    try:
        storage.get_file(ref.uri, target)
    except FileNotFoundError:
        raise SparkDDPError("SDDP-108", f"the code {ref.uri} is gone.", "Clear the task that stored it.") from None
    if storage.sha256(f"file://{target}") != ref.sha256:
        raise SparkDDPError("SDDP-108", f"the code {ref.uri} was changed.", "Clear the task that stored it.")
    return str(target)

"""Writes progress events, one small file each: an object store can't append."""

from __future__ import annotations

import json
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.errors import SparkDDPError


class ProgressWriter:
    """Numbered events in a folder. A failing write never stops the training; the first one is remembered."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.count = 0
        self.failed: str | None = None

    def write(self, event: dict[str, Any]) -> None:
        self.count += 1
        try:
            storage.write_text(paths.join(self.folder, f"{self.count:06d}.json"), json.dumps(event))
        except SparkDDPError as error:
            self.failed = self.failed or str(error)

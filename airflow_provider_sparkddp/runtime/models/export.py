"""From a training's model to an exported one: checked, loaded once to prove that it loads, then written whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.runtime.models import bundle
from airflow_provider_sparkddp.runtime.models.formats import safetensors
from airflow_provider_sparkddp.runtime.models.load import load_model


def export(
    source: str, destination: str, trusted_modules: Sequence[str], still_wanted: Callable[[], None]
) -> dict[str, Any]:
    """Write the model of a training to its destination; what lay there before is replaced only once all is written.

    Args:
        still_wanted: raises when the task that asked was killed; called right before the commit.

    Returns:
        alias, sha256 (of model.json's text and so of all files that it lists), bytes.

    Raises:
        SparkDDPError: as `load_model`, and SDDP-301.
    """
    loaded = load_model(source, trusted_modules)
    with tempfile.TemporaryDirectory(prefix="sparkddp-export-") as scratch:
        files = {bundle.WEIGHTS: Path(scratch) / bundle.WEIGHTS}
        tied = safetensors.save(loaded.module.state_dict(), files[bundle.WEIGHTS])
        if loaded.parity is not None:
            files[bundle.PARITY] = Path(scratch) / bundle.PARITY
            safetensors.save_tensors(loaded.parity, files[bundle.PARITY])
        still_wanted()
        return bundle.publish(destination, replace(loaded.description, tied=tied), files)

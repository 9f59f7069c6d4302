"""A rank's profiler, whose report lies in a folder that is copied to the run's storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.runtime.imports import build, import_object, parameters
from airflow_provider_sparkddp.runtime.training.lightning_names import of_package, require_kind
from airflow_provider_sparkddp.spec.objects import PROFILERS


def profiler(package: str, requested: Any, folder: Path) -> Any:
    """From trainer["profiler"]; None for none.

    Args:
        folder: of this rank's report.

    Raises:
        SparkDDPError: SDDP-401 when its path can't be imported, SDDP-409 when it is no Profiler.
    """
    if not requested:
        return None
    written = requested
    if isinstance(requested, str):
        written = {"$import": f"{package}.profilers:{PROFILERS[requested]}"}
    written = of_package(package, written)
    cls = import_object(written["$import"], "trainer['profiler']")
    # Without a file name Lightning's profilers print.
    ours = {"dirpath": str(folder), "filename": "report"}
    taken = {name: value for name, value in ours.items() if name in parameters(cls)}
    made = cls(**taken | build(written.get("kwargs", {}), "trainer['profiler']['kwargs']"))
    return require_kind(made, package, "profilers", "Profiler", "trainer['profiler']")

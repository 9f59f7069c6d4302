"""Loggers and profiler of a rank, and the folder of what they write, which is copied to the run's storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.runtime.imports import require_importable
from airflow_provider_sparkddp.runtime.training.lightning_names import of_package
from airflow_provider_sparkddp.runtime.training.loggers import loggers
from airflow_provider_sparkddp.runtime.training.mirror import Mirror, copied_at_epochs
from airflow_provider_sparkddp.runtime.training.profilers import profiler
from airflow_provider_sparkddp.spec import paths


@dataclass(frozen=True)
class Attached:
    """What watches a training.

    Attributes:
        loggers: label -> logger. Each rank has them, as Lightning does it; those of rank 0 alone write.
        mirror: copies this rank's files to `<try>/logs/<label>/` and `<try>/logs/profiler/rank-00000/`.
    """

    loggers: dict[str, Any]
    profiler: Any
    mirror: Mirror
    package: str

    @classmethod
    def of(cls, package: str, trainer: Mapping[str, Any], rank: int, folder: Path, uri: str) -> Attached:
        """Made before the ranks form a group: a rank that fails here leaves none waiting.

        Args:
            folder: a scratch folder of this rank's.
            uri: the try's folder of logs.

        Raises:
            SparkDDPError: SDDP-311, SDDP-401 or SDDP-409, also when a callback's path can't be imported.
        """
        require_importable(of_package(package, trainer.get("callbacks")), "trainer['callbacks']")
        kept = folder / paths.LOGS
        # What the loggers of the other ranks write, if anything, is not what the user asked for.
        made = loggers(package, trainer.get("logger"), kept if rank == 0 else folder / "unused", uri)
        profiles = kept / paths.PROFILER / f"rank-{rank:05d}"
        return cls(made, profiler(package, trainer.get("profiler"), profiles), Mirror(kept, uri), package)

    @property
    def callbacks(self) -> list[Any]:
        return [copied_at_epochs(self.package, self.mirror)] if self.loggers else []

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Afterwards, also after a failure, all files are on storage, or it is told why not."""
        try:
            yield
        finally:
            if self.loggers or self.profiler:
                self.mirror.finish()

    def told(self) -> dict[str, Any]:
        """For the rank's report: where the files of each logger and of the profiler lie, and why some were not copied.

        None for a logger without files there, such as one that writes to a server.
        """
        labels = [*self.loggers, *([paths.PROFILER] if self.profiler else [])]
        arrived = self.mirror.arrived()
        places = {label: paths.join(self.mirror.uri, label) if label in arrived else None for label in labels}
        return {"loggers": places, "logs_lost": self.mirror.failed}

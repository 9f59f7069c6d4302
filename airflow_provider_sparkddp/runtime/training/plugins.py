"""Plugins of the user's own: checkpoint IO, layer synchronisation, and a number format in another way of writing."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_sparkddp.runtime.imports import build
from airflow_provider_sparkddp.runtime.training.lightning_names import of_package
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.objects import listed


@dataclass(frozen=True)
class Plugins:
    """From trainer["plugins"].

    Attributes:
        precision: Lightning's Precision among them.
        name: its import path.
        others: CheckpointIO and LayerSync.
    """

    precision: Any = None
    name: str = ""
    others: tuple[Any, ...] = ()

    @classmethod
    def of(cls, package: str, trainer: Mapping[str, Any]) -> Plugins:
        """Raises SparkDDPError SDDP-103 where another setting decides already, SDDP-401, or SDDP-409 for other objects."""
        found, name, others = None, "", []
        home = importlib.import_module(f"{package}.plugins")
        precision = importlib.import_module(f"{package}.plugins.precision").Precision
        for written in listed(trainer.get("plugins")):
            made = build({"kwargs": {}, **of_package(package, written)}, "trainer['plugins']")
            _require_kind(package, made, (home.CheckpointIO, home.LayerSync, precision))
            if not isinstance(made, precision):
                others.append(made)
                continue
            if found is not None or trainer.get("precision") is not None:
                raise SparkDDPError(
                    "SDDP-103",
                    f"trainer['plugins'] holds {written['$import']!r}, and the number format is set already.",
                    "Give the precision once: as 'precision', or as one plugin.",
                )
            found, name = made, written["$import"]
        return cls(found, name, tuple(others))


def _require_kind(package: str, made: Any, allowed: tuple[Any, ...]) -> None:
    if isinstance(made, allowed):
        return
    environments = importlib.import_module(f"{package}.plugins.environments")
    if isinstance(made, environments.ClusterEnvironment):
        raise SparkDDPError(
            "SDDP-103",
            f"trainer['plugins'] holds a {type(made).__name__}, and who a rank is comes from Spark.",
            "Leave it out: the operator brings its own ClusterEnvironment.",
        )
    raise SparkDDPError(
        "SDDP-409",
        f"trainer['plugins'] holds a {type(made).__name__}.",
        f"Allowed are {', '.join(kind.__name__ for kind in allowed)} of the same Lightning package as the model.",
    )

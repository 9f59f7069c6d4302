"""Number formats: Lightning's names, a user's own plugin, and the format of the inputs that goes with each."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from airflow_provider_sparkddp.runtime.imports import build, require_package
from airflow_provider_sparkddp.runtime.training.lightning_names import require_kind
from airflow_provider_sparkddp.spec.seams import is_own, normal


@dataclass(frozen=True)
class Format:
    """A number format.

    Attributes:
        name: full name of spec/seams.py, or the user's import path.
        plugin: Lightning's Precision object; None where Lightning makes it from the name.
    """

    name: str
    plugin: Any = None

    @property
    def input_dtype(self) -> Any:
        """The dtype that batches are made in; Lightning converts floats further where the format says so."""
        import torch

        return torch.float64 if self.name == "64-true" else torch.float32


def number_format(package: str, requested: Any, device: str) -> Format:
    """From trainer["precision"].

    Args:
        package: the Trainer's.
        device: torch device type of the hardware.

    Raises:
        SparkDDPError: SDDP-311 when the format's package is missing, SDDP-409 when the user's own is no Precision.
    """
    plugins = importlib.import_module(f"{package}.plugins.precision")
    if is_own(requested):
        return Format(requested["$import"], _own(package, requested))
    name = str(normal("precision", requested))
    if name.startswith("transformer-engine"):
        require_package("transformer_engine", f"precision={name!r}", "Install transformer-engine on the executors.")
    if name.startswith("bitsandbytes-"):
        require_package("bitsandbytes", f"precision={name!r}", "Install bitsandbytes on the executors.")
        return Format(name, plugins.BitsandbytesPrecision(mode=name.removeprefix("bitsandbytes-")))
    if name.endswith("-mixed") and device not in ("cpu", "cuda", "mps"):
        # Of an accelerator that it doesn't know Lightning believes that it is CUDA.
        return Format(name, plugins.MixedPrecision(name, device))
    return Format(name)


def _own(package: str, requested: Any) -> Any:
    built = build({"kwargs": {}, **requested}, "trainer['precision']")
    what = f"trainer['precision']={requested['$import']!r}"
    return require_kind(built, package, "plugins.precision", "Precision", what)

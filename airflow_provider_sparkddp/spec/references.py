"""What one task hands to the next through XCom, or a DAG author writes as a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.arguments import convert
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import CodeRef


@dataclass(frozen=True)
class ModelRef:
    """A stored model: where it lies, which modules its DAG's author named, and the code that came with it."""

    uri: str
    trusted_modules: tuple[str, ...]
    code: tuple[CodeRef, ...]


def manifest_uri(value: Any, name: str) -> str:
    """The manifest's URI, from PartitionToParquetOperator's output or a path. Raises SparkDDPError SDDP-101 or SDDP-107."""
    found = _field(value, name, "manifest", "PartitionToParquetOperator's output or the path of a manifest.json")
    uri = paths.absolute_uri(found, name)
    return uri if uri.endswith(".json") else paths.join(uri, paths.MANIFEST)


def model_ref(value: Any, name: str) -> ModelRef:
    """From SparkDDPTrainOperator's or ModelExportOperator's output, or a path. Raises SparkDDPError SDDP-101 or SDDP-107."""
    value = _parsed(value, name)
    found = _field(value, name, "model", "the output of the training or export task, or a path")
    uri = paths.absolute_uri(found.removesuffix("/model.json"), name)
    if not isinstance(value, Mapping):
        return ModelRef(uri, (), ())
    code = tuple(CodeRef(c["uri"], c["sha256"], tuple(c["modules"])) for c in value.get("code", ()))
    return ModelRef(uri, tuple(value.get("trusted_modules", ())), code)


def _parsed(value: Any, name: str) -> Any:
    """An output that a template rendered to text becomes a dict again."""
    return convert(name, value, "dict") if isinstance(value, str) and value.lstrip().startswith("{") else value


def _field(value: Any, name: str, key: str, expected: str) -> str:
    value = _parsed(value, name)
    found = value.get(key) if isinstance(value, Mapping) else value
    if not isinstance(found, str) or not found:
        raise SparkDDPError("SDDP-101", f"{name} is {value!r}.", f"Give {expected}.")
    return found


def named_modules(model: str, model_kwargs: Any) -> list[str]:
    """The modules that a DAG's author named: that of the model, and those of every {"$import": …} in its arguments."""
    return list(dict.fromkeys(path.partition(":")[0] for path in [model, *import_paths(model_kwargs)]))


def import_paths(value: Any) -> Iterator[str]:
    """Every {"$import": path} inside of plain data."""
    if isinstance(value, Mapping):
        if "$import" in value:
            yield str(value["$import"])
        for inner in value.values():
            yield from import_paths(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from import_paths(inner)

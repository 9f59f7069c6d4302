"""Checks of one operator's arguments against one another. Pure; each takes only what is known and leaves the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from airflow_provider_sparkddp.spec import compat, paths
from airflow_provider_sparkddp.spec.arguments import UNKNOWN, convert
from airflow_provider_sparkddp.spec.errors import SparkDDPError, nearest
from airflow_provider_sparkddp.spec.secrets import refuse_secrets

IMPORT_PATH = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")
IMPORT_KEYS = ("$import", "kwargs")
METRICS = ("mae", "mse", "rmse", "median_ae", "r2")
GATES = ("max", "min", "max_ratio", "baseline", "offset")
OFFSETS = ("train_median", "train_mean")
PLAIN = "Use texts, numbers, booleans, lists and dicts; write a date as text, such as '2013-11-01'."
OBJECTS = "Write objects as {'$import': 'pkg.mod:Class', 'kwargs': {…}}."
ALIAS = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")


def import_path(name: str, value: str) -> str:
    """Raises SparkDDPError SDDP-101 unless the value is written `package.module:Name`."""
    if not IMPORT_PATH.match(value):
        raise SparkDDPError(
            "SDDP-101", f"{name}={value!r} is not an import path.", "Write 'package.module:Name', with one colon."
        )
    return value


def _one_of(name: str, value: Any, valid: tuple[str, ...], code: str = "SDDP-101") -> None:
    if value is not UNKNOWN and value not in valid:
        raise SparkDDPError(code, f"{name} is {value!r}.", f"{nearest(str(value), valid)}Allowed: {', '.join(valid)}.")


def _run_dir(arguments: dict[str, Any]) -> None:
    if arguments.get("run_dir"):
        arguments["run_dir"] = paths.absolute_uri(arguments["run_dir"], "run_dir")


def check_partition(arguments: dict[str, Any]) -> None:
    _run_dir(arguments)
    if "source" in arguments:
        check_source(arguments["source"])
        _check_json("source", arguments["source"], PLAIN)
    if "validation" in arguments:
        arguments["validation"] = check_validation(arguments["validation"])
        _check_json("validation", arguments["validation"], PLAIN)
    if arguments.get("columns") == []:
        raise SparkDDPError("SDDP-101", "columns is empty.", "Name the columns to keep, or leave it out to keep all.")
    columns = arguments.get("columns") or []
    doubled = sorted({c for c in columns if columns.count(c) > 1})
    if doubled:
        raise SparkDDPError("SDDP-204", f"columns names {doubled[0]!r} twice.", "Name each column once.")


SOURCE_SECRETS = (
    "Let the function or the driver's own configuration fetch it (a secret manager, a file that only the driver may read, "
    "Spark's credential providers)."
)
SOURCE_KEYS: dict[str, tuple[str, ...]] = {
    "path": ("format", "path", "options"),
    "table": ("table",),
    "sql": ("sql",),
    "callable": ("callable", "kwargs"),
}


def check_source(source: Mapping[str, Any]) -> None:
    """Exactly one of path, table, sql, callable, with the keys that belong to it."""
    if "jdbc_conn_id" in source:
        raise SparkDDPError(
            "SDDP-102",
            "source names jdbc_conn_id, and this version can't read JDBC yet.",
            "Read it in a function and give source={'callable': 'pkg.mod:fn'}.",
        )
    kinds = [kind for kind in SOURCE_KEYS if kind in source]
    if len(kinds) != 1:
        raise SparkDDPError(
            "SDDP-101",
            f"source has {', '.join(map(repr, source)) or 'no keys'}; it needs exactly one of {', '.join(SOURCE_KEYS)}.",
            "For example {'format': 'parquet', 'path': 's3://bucket/table'} or {'table': 'db.name'}.",
        )
    for key, value in source.items():
        _one_of("a key of source", key, SOURCE_KEYS[kinds[0]])
        if key in ("options", "kwargs"):
            refuse_secrets(f"source[{key!r}]", convert(f"source[{key!r}]", value, "dict") or None, SOURCE_SECRETS)
        elif not (key == "path" and isinstance(value, list)):
            convert(f"source[{key!r}]", value, "str")
    if "path" in source and "format" not in source:
        raise SparkDDPError(
            "SDDP-101", "source has a path and no format.", "Add 'format': 'csv' (or parquet, json, orc)."
        )
    if isinstance(source.get("callable"), str):
        import_path("source['callable']", source["callable"])


def check_validation(value: Any) -> Any:
    """A fraction, {"after": {"column", "value"}} or {"column": name}; None for no validation rows."""
    if value is None:
        return None
    if isinstance(value, str) and value.strip().startswith("{"):
        value = convert("validation", value, "dict")
    if not isinstance(value, Mapping):
        fraction = convert("validation", value, "float")
        if not 0 < fraction < 1:
            raise SparkDDPError(
                "SDDP-101", f"validation={value!r} is not between 0 and 1.", "Use a fraction such as 0.1, or None."
            )
        return fraction
    if "last_per_group" in value:
        raise SparkDDPError(
            "SDDP-102", "validation={'last_per_group': …} is set; this version can't do that yet.", "Use 'after'."
        )
    if len(value) != 1 or next(iter(value)) not in ("after", "column"):
        raise SparkDDPError(
            "SDDP-101",
            f"validation has the keys {', '.join(map(repr, value)) or 'none'}.",
            "Use a fraction, {'after': {'column': …, 'value': …}} or {'column': …}.",
        )
    if "after" in value and value["after"] is not UNKNOWN:
        after = convert("validation['after']", value["after"], "dict")
        if set(after) != {"column", "value"}:
            raise SparkDDPError(
                "SDDP-101",
                f"validation['after'] has the keys {', '.join(map(repr, after)) or 'none'}.",
                "Give it 'column' and 'value': rows whose column is greater than the value are for validation.",
            )
        return {"after": {**after, "column": convert("validation['after']['column']", after["column"], "str")}}
    return {key: convert(f"validation[{key!r}]", inner, "str") for key, inner in value.items()}


def check_train(arguments: dict[str, Any]) -> None:
    _run_dir(arguments)
    if "trainer" in arguments:
        arguments["trainer"] = compat.check_trainer(arguments["trainer"] or {})
    if arguments.get("model"):
        import_path("model", arguments["model"])
    if arguments.get("alias") and not ALIAS.match(arguments["alias"]):
        raise SparkDDPError(
            "SDDP-101",
            f"alias={arguments['alias']!r} can't name a column and a folder.",
            "Use letters, digits, '_', '-' and '.', beginning with a letter or digit, at most 100.",
        )
    if arguments.get("max_restarts"):
        raise SparkDDPError(
            "SDDP-102",
            f"max_restarts={arguments['max_restarts']} is set; this version can't resume a training yet.",
            "Leave it at 0; Airflow's retries start the task again.",
        )
    _check_on_nan(arguments)
    _check_features(arguments)
    _check_json("model_kwargs", arguments.get("model_kwargs"), OBJECTS)
    _check_json("trainer", arguments.get("trainer"), OBJECTS)
    _check_callbacks(arguments.get("trainer") or {})


def _check_on_nan(arguments: dict[str, Any]) -> None:
    if arguments.get("on_nan") == "skip":
        raise SparkDDPError("SDDP-102", "on_nan='skip' is set; this version can't do that yet.", "Use 'stop'.")
    if arguments.get("on_nan"):
        _one_of("on_nan", arguments["on_nan"], ("stop",))


def _check_features(arguments: dict[str, Any]) -> None:
    features = arguments.get("features")
    if features is None:
        return
    if not features:
        raise SparkDDPError("SDDP-101", "features is empty.", "List the columns that the model learns from.")
    doubled = sorted({f for f in features if features.count(f) > 1})
    if doubled:
        raise SparkDDPError("SDDP-204", f"features names {doubled[0]!r} twice.", "Name each feature once.")
    if arguments.get("target") in features:
        raise SparkDDPError(
            "SDDP-204",
            f"target {arguments['target']!r} is also a feature: the model would be given the answer.",
            "Take it out of features.",
        )


def _check_json(name: str, value: Any, remedy: str) -> None:
    """Plain JSON, with UNKNOWN allowed while the DAG is parsed."""
    try:
        json.dumps(value, allow_nan=False, default=lambda v: None if v is UNKNOWN else _not_json(v))
    except (TypeError, ValueError) as error:
        raise SparkDDPError(
            "SDDP-101",
            f"{name} is not plain JSON: {error}.",
            remedy,
        ) from None
    _check_imports(name, value)


def _not_json(value: Any) -> Any:
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def _check_imports(name: str, value: Any) -> None:
    if isinstance(value, Mapping):
        if any(str(key).startswith("$") for key in value):
            _check_import(name, value)
        for key, inner in value.items():
            _check_imports(f"{name}[{key!r}]", inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check_imports(f"{name}[{index}]", inner)


def _check_import(name: str, value: Mapping[str, Any]) -> None:
    """{"$import": path} is the thing itself, with "kwargs" (also empty) what it returns; nothing else belongs there."""
    for key in value:
        _one_of(f"a key of {name}", key, IMPORT_KEYS)
    if value.get("$import") is not UNKNOWN:
        import_path(f"{name}['$import']", convert(f"{name}['$import']", value.get("$import"), "str"))
    if "kwargs" in value:
        convert(f"{name}['kwargs']", value["kwargs"], "dict")


def _check_callbacks(trainer: Mapping[str, Any]) -> None:
    """One {"$import": …, "kwargs": {…}} or a list of them."""
    callbacks = trainer.get("callbacks") or []
    for callback in [callbacks] if isinstance(callbacks, Mapping) else callbacks:
        if callback is not UNKNOWN and not (isinstance(callback, Mapping) and "$import" in callback):
            raise SparkDDPError(
                "SDDP-101",
                f"trainer['callbacks'] holds {callback!r}.",
                "Write each callback as {'$import': 'pkg.mod:Class', 'kwargs': {…}}.",
            )


def check_export(arguments: dict[str, Any]) -> None:
    _run_dir(arguments)
    if arguments.get("destination"):
        arguments["destination"] = paths.absolute_uri(arguments["destination"], "destination")
    for name in arguments.get("formats") or ():
        _one_of("formats", name, ("safetensors",), code="SDDP-102")
    if arguments.get("formats") == []:
        raise SparkDDPError("SDDP-101", "formats is empty.", "Use ['safetensors'].")


def check_validate(arguments: dict[str, Any]) -> None:
    _run_dir(arguments)
    if arguments.get("metrics"):
        arguments["metrics"] = {metric: check_gate(metric, gate) for metric, gate in arguments["metrics"].items()}


def check_gate(metric: str, gate: Any) -> Any:
    """{"max": 30}, {"min": 0.8}, or {"max_ratio": 0.98, "baseline": column, "offset": "train_median" or a number}."""
    _one_of("a key of metrics", metric, METRICS)
    if gate is UNKNOWN:
        return gate
    gate = convert(f"metrics[{metric!r}]", gate, "dict")
    for key in gate:
        _one_of(f"a key of metrics[{metric!r}]", key, GATES)
    if not {"max", "min", "max_ratio"} & set(gate):
        raise SparkDDPError(
            "SDDP-101", f"metrics[{metric!r}] has no bound.", "Set 'max', 'min' or 'max_ratio' with a 'baseline'."
        )
    if ("max_ratio" in gate) != ("baseline" in gate) or ("offset" in gate and "baseline" not in gate):
        raise SparkDDPError(
            "SDDP-101",
            f"metrics[{metric!r}] has {', '.join(map(repr, gate))}: max_ratio, baseline and offset belong together.",
            "Set 'max_ratio' and 'baseline' (a column), and 'offset' if the baseline needs one.",
        )
    if metric == "r2" and "max_ratio" in gate:
        raise SparkDDPError("SDDP-101", "metrics['r2'] has max_ratio; r2 grows as it gets better.", "Use 'min'.")
    return {key: _gate_value(metric, key, value) for key, value in gate.items()}


def _gate_value(metric: str, key: str, value: Any) -> Any:
    name = f"metrics[{metric!r}][{key!r}]"
    if key == "baseline":
        return convert(name, value, "str")
    if key == "offset" and value in OFFSETS:
        return value
    number = convert(f"{name} ({' or '.join(OFFSETS)}, or a number)" if key == "offset" else name, value, "float")
    if key == "max_ratio" and number <= 0:
        raise SparkDDPError("SDDP-101", f"{name}={value!r} can never pass.", "Use a ratio above 0, such as 0.98.")
    return number


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "partition": check_partition,
    "train": check_train,
    "export": check_export,
    "validate": check_validate,
}

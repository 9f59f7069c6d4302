"""Checks of the export's and the validation's arguments against one another."""

from __future__ import annotations

from typing import Any

from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.arguments import UNKNOWN, convert
from airflow_provider_sparkddp.spec.checks.values import one_of, run_dir
from airflow_provider_sparkddp.spec.errors import SparkDDPError

METRICS = ("mae", "mse", "rmse", "median_ae", "r2")
GATES = ("max", "min", "max_ratio", "baseline", "offset")
OFFSETS = ("train_median", "train_mean")


def check_export(arguments: dict[str, Any]) -> None:
    run_dir(arguments)
    if arguments.get("destination"):
        arguments["destination"] = paths.absolute_uri(arguments["destination"], "destination")
    for name in arguments.get("formats") or ():
        one_of("formats", name, ("safetensors",), code="SDDP-102")
    if arguments.get("formats") == []:
        raise SparkDDPError("SDDP-101", "formats is empty.", "Use ['safetensors'].")


def check_validate(arguments: dict[str, Any]) -> None:
    run_dir(arguments)
    if arguments.get("metrics"):
        arguments["metrics"] = {metric: check_gate(metric, gate) for metric, gate in arguments["metrics"].items()}


def check_gate(metric: str, gate: Any) -> Any:
    """{"max": 30}, {"min": 0.8}, or {"max_ratio": 0.98, "baseline": column, "offset": "train_median" or a number}."""
    one_of("a key of metrics", metric, METRICS)
    if gate is UNKNOWN:
        return gate
    gate = convert(f"metrics[{metric!r}]", gate, "dict")
    for key in gate:
        one_of(f"a key of metrics[{metric!r}]", key, GATES)
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

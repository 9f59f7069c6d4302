"""Loggers, profiler and plugins of a Trainer: how they are written, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec.arguments import UNKNOWN
from airflow_provider_sparkddp.spec.errors import SparkDDPError, nearest
from airflow_provider_sparkddp.spec.seams import is_own
from airflow_provider_sparkddp.spec.secrets import refuse_secrets

# Short name -> Lightning's class.
LOGGERS: dict[str, str] = {"csv": "CSVLogger", "tensorboard": "TensorBoardLogger", "mlflow": "MLFlowLogger"}
PROFILERS: dict[str, str] = {"simple": "SimpleProfiler", "advanced": "AdvancedProfiler", "pytorch": "PyTorchProfiler"}
# Arguments of loggers and profilers that say where their files lie.
PLACES = ("save_dir", "log_dir", "root_dir", "dir", "dirpath")
LOGGER_SECRETS = (
    "Leave it out, and give it to the executors by their own environment, as the logger's service documents it."
)
WRITTEN = "{'$import': 'pkg.mod:Class', 'kwargs': {…}}"


def listed(value: Any) -> list[Any]:
    """One or several, as a list; none for what is switched off."""
    if value is None or value is False:
        return []
    return list(value) if isinstance(value, list) else [value]


def check(trainer: Mapping[str, Any]) -> None:
    """Raises SparkDDPError SDDP-101 for what is written wrongly, SDDP-103 for what the operator decides, SDDP-111 for secrets."""
    for logger in listed(trainer.get("logger")):
        if logger is not True:
            _check_object("logger", logger, LOGGERS)
            _check_logger(logger)
    profiler = trainer.get("profiler")
    if isinstance(profiler, list):
        raise SparkDDPError("SDDP-101", "trainer['profiler'] is a list.", "Give one profiler.")
    for each in listed(profiler):
        _check_object("profiler", each, PROFILERS)
    for plugin in listed(trainer.get("plugins")):
        _check_object("plugins", plugin, {})
        _refuse_environment(plugin)


def _check_object(name: str, value: Any, short: Mapping[str, str]) -> None:
    what = f"trainer[{name!r}]"
    known = value is UNKNOWN or is_own(value) or (isinstance(value, str) and value in short)
    if not known:
        names = f"{', '.join(map(repr, short))}, or " if short else ""
        raise SparkDDPError(
            "SDDP-101", f"{what} holds {value!r}.", f"{nearest(str(value), short)}Write {names}{WRITTEN}."
        )
    for place in sorted(set(PLACES) & set(_kwargs(value))):
        raise SparkDDPError(
            "SDDP-103",
            f"{what} sets {place!r}, and its files lie on the run's storage.",
            f"Leave {place} out; the result says where they are.",
        )


def _check_logger(logger: Any) -> None:
    kwargs = _kwargs(logger)
    refuse_secrets("trainer['logger']", kwargs, LOGGER_SECRETS)
    uri = kwargs.get("tracking_uri")
    local = isinstance(uri, str) and "{" not in uri and (uri.startswith("sqlite:") or "://" not in uri)
    if local and uri != "databricks":
        raise SparkDDPError(
            "SDDP-103",
            f"trainer['logger'] has tracking_uri={uri!r}, which lies on one executor.",
            "Give the URI of an MLflow server, or leave it out: then MLflow's files lie on the run's storage.",
        )


def _refuse_environment(plugin: Any) -> None:
    if is_own(plugin) and ".plugins.environments" in str(plugin["$import"]):
        raise SparkDDPError(
            "SDDP-103",
            f"trainer['plugins'] holds {plugin['$import']!r}, and who a rank is comes from Spark.",
            "Leave it out: the operator brings its own ClusterEnvironment.",
        )


def _kwargs(value: Any) -> Mapping[str, Any]:
    found = value.get("kwargs") if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}

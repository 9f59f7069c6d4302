"""Check of init_from: which stored model or checkpoint a training starts from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_sparkddp.spec import paths
from airflow_provider_sparkddp.spec.arguments import UNKNOWN, convert, is_empty
from airflow_provider_sparkddp.spec.checks.values import one_of
from airflow_provider_sparkddp.spec.errors import SparkDDPError

KEYS = ("path", "strict")


def check_init_from(value: Any) -> dict[str, Any] | None:
    """{"path": absolute URI of a model's folder or a .ckpt file, "strict": bool}; None where nothing is set.

    Args:
        value: an export's or a training's output, a path, or {"path": either, "strict": bool}; dicts also as text.

    Raises:
        SparkDDPError: SDDP-101 for anything else, SDDP-107 for a path that is no absolute URI.
    """
    value = _parsed(value)
    if is_empty(value) or value == {}:
        return None
    given = dict(value) if isinstance(value, Mapping) and "model" not in value else {"path": value}
    for key in given:
        one_of("a key of init_from", key, KEYS)
    path, strict = _parsed(given.get("path")), given.get("strict")
    if is_empty(path):
        return None
    return {
        "path": path if path is UNKNOWN else _uri(path),
        "strict": True if is_empty(strict) else convert("init_from['strict']", strict, "bool"),
    }


def _parsed(value: Any) -> Any:
    """A dict that a template rendered to text becomes one again."""
    return convert("init_from", value, "dict") if isinstance(value, str) and value.lstrip().startswith("{") else value


def _uri(path: Any) -> Any:
    found = path.get("model") if isinstance(path, Mapping) else path
    if found is UNKNOWN:
        return UNKNOWN
    if not isinstance(found, str) or not found:
        raise SparkDDPError(
            "SDDP-101",
            f"init_from is {path!r}.",
            "Give the output of an export or a training, the path of a stored model or of a .ckpt file, "
            "or {'path': one of these, 'strict': False}.",
        )
    return paths.absolute_uri(found.strip().removesuffix("/model.json"), "init_from")

"""Checks of one operator's arguments against one another. Pure; each takes only what is known and leaves the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_provider_sparkddp.spec.checks.models import check_export, check_validate
from airflow_provider_sparkddp.spec.checks.partition import check_partition
from airflow_provider_sparkddp.spec.checks.train import check_train

CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "partition": check_partition,
    "train": check_train,
    "export": check_export,
    "validate": check_validate,
}

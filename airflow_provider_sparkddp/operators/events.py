"""What an asset's event tells of a task of ours: its `outlets` say which assets, this says where and how much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow.providers.common.compat.sdk import Asset

from airflow_provider_sparkddp.spec import jobs

# kind of job -> what the event holds -> the value of the job that it is taken from
TOLD: dict[str, dict[str, str]] = {
    jobs.PARTITION: {"manifest": "manifest", "rows": "total_rows", "reused": "reused"},
    jobs.TRAIN: {"model": "model", "alias": "alias"},
    jobs.EXPORT: {"model": "model", "alias": "alias"},
    jobs.VALIDATE: {"model": "model", "alias": "alias", "verdict": "verdict"},
}


def tell_assets(kind: str, values: Mapping[str, Any], outlets: Iterable[Any], context: Any) -> None:
    """Adds to the event of each Asset in `outlets`; what somebody else put there stays."""
    told = {name: values[taken] for name, taken in TOLD[kind].items() if taken in values}
    for outlet in outlets:
        if isinstance(outlet, Asset):
            event = context["outlet_events"][outlet]
            event.extra = {**event.extra, **told}

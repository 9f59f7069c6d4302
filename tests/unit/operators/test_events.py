"""What an asset's event tells: where the result lies and how much there is, beside what others put there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import Asset
from airflow.sdk import AssetAlias
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_sparkddp.operators.events import TOLD, tell_assets
from airflow_provider_sparkddp.spec import jobs

ASSET, OTHER = Asset("s3://bucket/flights"), Asset("s3://bucket/other")
VALUES: dict[str, dict[str, Any]] = {
    "partition": {
        "manifest": "s3://b/manifest.json",
        "total_rows": {"train": 9},
        "rows": {"train": [5, 4]},
        "files": [],
    },
    "train": {"model": "s3://b/model", "alias": "delay", "metrics": {"loss": 0.5}},
    "export": {"model": "s3://b/models/delay", "alias": "delay", "sha256": "0"},
    "validate": {"verdict": "passed", "model": "s3://b/models/delay", "alias": "delay", "checks": []},
}
EVENTS = {
    "partition": {"manifest": "s3://b/manifest.json", "rows": {"train": 9}},
    "train": {"model": "s3://b/model", "alias": "delay"},
    "export": {"model": "s3://b/models/delay", "alias": "delay"},
    "validate": {"verdict": "passed", "model": "s3://b/models/delay", "alias": "delay"},
}


@pytest.mark.parametrize("kind", EVENTS)
def test_each_operator_tells_its_assets_where_and_how_much(kind: str) -> None:
    events = OutletEventAccessors()
    tell_assets(kind, VALUES[kind], [ASSET, OTHER], {"outlet_events": events})
    assert events[ASSET].extra == events[OTHER].extra == EVENTS[kind]


def test_every_kind_of_job_has_something_to_tell() -> None:
    assert set(TOLD) == set(jobs.ARGUMENTS)


def test_what_others_put_there_stays() -> None:
    events = OutletEventAccessors()
    events[ASSET].extra = {"by": "a hook of the user's"}
    tell_assets("export", VALUES["export"], [ASSET], {"outlet_events": events})
    assert events[ASSET].extra == {"by": "a hook of the user's", **EVENTS["export"]}


@pytest.mark.parametrize("outlets", [[], [AssetAlias("any")], [SimpleNamespace(uri="s3://bucket/x")]])
def test_what_is_no_asset_is_not_told(outlets: list[Any]) -> None:
    events = OutletEventAccessors()
    tell_assets("export", VALUES["export"], outlets, {"outlet_events": events})
    assert len(events) == 0

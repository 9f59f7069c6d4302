"""Many trainings in one barrier job, one after the other in the same Python workers: for tests that walk a table."""

from __future__ import annotations

from typing import Any

from torch.distributed import PrefixStore

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.training.rank import train_rank


def train_each(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Train with each of settings["each"] (additions to the rest of the settings); the ranks' reports by their key."""
    rest = {name: value for name, value in settings.items() if name != "each"}
    reports = {
        key: train_rank(info, PrefixStore(key, store), rest | different) for key, different in settings["each"].items()
    }
    return {"rank": info.rank, "reports": reports}

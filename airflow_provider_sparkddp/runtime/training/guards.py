"""What keeps a training of several ranks honest: the callbacks that the operator's own arguments and promises ask for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.training.callbacks.best import Best
from airflow_provider_sparkddp.runtime.training.callbacks.finite import SkipNan, StopOnNan
from airflow_provider_sparkddp.runtime.training.callbacks.learning import Learning
from airflow_provider_sparkddp.runtime.training.callbacks.seeds import Seeds
from airflow_provider_sparkddp.runtime.training.callbacks.shared_metrics import SharedMetrics
from airflow_provider_sparkddp.runtime.training.callbacks.stopping import early_stopping
from airflow_provider_sparkddp.runtime.training.callbacks.together import together
from airflow_provider_sparkddp.runtime.training.faults import explained


@dataclass(frozen=True)
class Guards:
    """The callbacks for the Trainer, and the guards that are asked for what they found."""

    callbacks: tuple[Any, ...]
    finite: StopOnNan | SkipNan
    learning: Learning
    best: Best | None

    @classmethod
    def of(cls, package: str, info: RankInfo, settings: Mapping[str, Any], seed: int, rows: tuple[int, int]) -> Guards:
        """For a Trainer of the package. `rows`: of this rank's training and validation."""
        stop, keep = settings.get("early_stopping"), settings.get("best_weights")
        finite = SkipNan() if settings.get("on_nan") == "skip" else StopOnNan(info.rank)
        learning, best = Learning(), Best(**keep) if keep else None
        shared = [SharedMetrics(rows)] if info.world_size > 1 else []
        guards = [*shared, Seeds(seed, info.rank), learning, finite, *([best] if best else [])]
        stopping = (early_stopping(package, stop),) if stop else ()
        callback = together(package, guards, best.monitor if best else None)
        return cls((callback, *stopping), finite, learning, best)

    def explained(self, trainer: Any) -> AbstractContextManager[None]:
        """Around `trainer.fit`: errors in words that say what to do."""
        return explained(trainer, self.learning)

    def told(self) -> dict[str, Any]:
        """For rank 0's report: `skipped_steps` with on_nan="skip", `best` with best_weights, whose metrics are the result's."""
        report: dict[str, Any] = {}
        if isinstance(self.finite, SkipNan):
            report["skipped_steps"] = self.finite.skipped
        if self.best and self.best.told:
            told = dict(self.best.told)
            report |= {"metrics": told.pop("metrics"), "best": told}
        return report

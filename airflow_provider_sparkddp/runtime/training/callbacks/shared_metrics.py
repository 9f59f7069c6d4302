"""A logged value is of all ranks or is not shown: what ranks log without sync_dist is exchanged before anybody reads it.

Lightning leaves such a value as it is: `callback_metrics`, loggers and monitors see one rank's own. Here the ranks exchange names,
values and rows at points that all of them pass: the ends of training and validation, the steps at which loggers log, and the last
step of an epoch. What all ranks have becomes the value over all rows; the rest is left out, and told.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from airflow_provider_sparkddp.spec.errors import SparkDDPError

LOG = logging.getLogger(__name__)
# How a value is brought together: one of Lightning's reductions, or ITSELF (it is synchronised already), or OWN (it can't be).
ITSELF, OWN = "itself", "own"
SYNCHRONISE = "Log it on every rank alike; self.log(…, sync_dist=True) lets Lightning synchronise it itself."


class Part(NamedTuple):
    """One rank's part of a metric. `names`: those that Lightning shows it by. For a mean `value` is the sum over `weight` rows."""

    names: tuple[str, ...]
    how: str
    value: float = 0.0
    weight: float = 0.0


def combined(parts: Sequence[Part]) -> float | None:
    """The value over all ranks; None where they bring it together in different ways, or it can't be."""
    values, how = [part.value for part in parts], parts[0].how
    if {part.how for part in parts} != {how} or how not in ("mean", "sum", "min", "max"):
        return None
    if any(map(math.isnan, values)):
        return math.nan  # min and max would lose it
    if how == "mean":
        rows = sum(part.weight for part in parts)
        return sum(values) / rows if rows else math.nan
    return sum(values) if how == "sum" else max(values) if how == "max" else min(values)


def agreed(of_ranks: Sequence[Mapping[str, Part]]) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """What the ranks have together, by the metric's key: its value over all of them, or ITSELF; and of the rest who has it."""
    together: dict[str, Any] = {}
    left: dict[str, list[int]] = {}
    for key in sorted({key for parts in of_ranks for key in parts}):
        having = [rank for rank, parts in enumerate(of_ranks) if key in parts]
        parts = [of_ranks[rank][key] for rank in having]
        value: Any = ITSELF if {part.how for part in parts} == {ITSELF} else combined(parts)
        if len(having) < len(of_ranks) or value is None:
            left[key] = having
        else:
            together[key] = value
    return together, left


class _SharedResults:
    """Lightning's collection of what was logged, which shows only values of all ranks.

    Each of its metrics has `shared`: whether it is of a step -> the value over all ranks, ITSELF, or None where it is left out.
    """

    rows = 1  # of this rank in an epoch
    trainer: Any

    def _extract_batch_size(self, value: Any, batch_size: int | None, meta: Any) -> int:
        if batch_size is None and self.batch is None and meta.is_mean_reduction:  # type: ignore[attr-defined]
            return self.rows  # logged at the end of an epoch, over all of this rank's rows
        # Lightning counts no rows for what is logged at steps alone.
        counted = SimpleNamespace(on_epoch=True, is_mean_reduction=meta.is_mean_reduction)
        return super()._extract_batch_size(value, batch_size, counted)  # type: ignore[misc]

    def update_metrics(self, key: str, value: Any, batch_size: int) -> None:
        super().update_metrics(key, value, batch_size)  # type: ignore[misc]
        metric = self[key]  # type: ignore[index]
        metric.weight, metric.shared = batch_size, {}
        # EarlyStopping reads it before the ranks could exchange it.
        if (
            metric.meta.fx == "on_train_epoch_end"
            and _how(metric, False) != ITSELF
            and metric.meta.name in watched(self.trainer)
        ):
            raise SparkDDPError(
                "SDDP-410",
                f"{metric.meta.name!r} is monitored, and logged in on_train_epoch_end as each rank's own value.",
                SYNCHRONISE,
            )

    def _get_cache(self, metric: Any, on_step: bool) -> Any:
        shared = metric.shared.get(on_step, ITSELF if _how(metric, on_step) == ITSELF else None)
        return super()._get_cache(metric, on_step) if shared == ITSELF else shared  # type: ignore[misc]

    def parts(self, on_step: bool) -> dict[str, Part]:
        """What this rank has to exchange, by the metric's key."""
        return {
            key: self._part(metric, on_step)
            for key, metric in self.items()  # type: ignore[attr-defined]
            if (metric.meta.on_step if on_step else metric.meta.on_epoch)
            and not metric.has_reset
            and on_step not in metric.shared
        }

    def _part(self, metric: Any, on_step: bool) -> Part:
        name, forked = self._forked_name(metric, on_step)  # type: ignore[attr-defined]
        # At a step the plain name of a metric that has both is the epoch's.
        names, how = ((forked,) if on_step else (name, forked)), _how(metric, on_step)
        if how in (ITSELF, OWN):
            return Part(names, how)
        if not on_step:
            return Part(names, how, float(metric.value), float(getattr(metric, "cumulated_batch_size", 0)))
        value = float(metric._forward_cache)
        return Part(names, how, value * metric.weight if how == "mean" else value, metric.weight)

    def take(self, on_step: bool, together: Mapping[str, Any]) -> None:
        """Show what the ranks have together, and nothing else of what was exchanged."""
        import torch

        for key in self.parts(on_step):
            metric, value = self[key], together.get(key)  # type: ignore[index]
            if isinstance(value, float):
                value = torch.tensor(value, dtype=metric.value.dtype, device=metric.value.device)
            metric.shared[on_step] = value


def _how(metric: Any, on_step: bool) -> str:
    if metric.is_tensor:
        sync = metric.meta.sync
        return ITSELF if sync.should and not sync.rank_zero_only else metric.meta.reduce_fx.__name__
    # A torchmetrics object.
    return ITSELF if (metric.value.dist_sync_on_step if on_step else metric.value.sync_on_compute) else OWN


class _SharedConnector:
    """Lightning's way from logged values to callbacks and loggers, with exchanges at the points that all ranks pass."""

    told: set[str]

    def epoch_end_reached(self) -> None:
        super().epoch_end_reached()  # type: ignore[misc]
        self._exchange(on_step=False)

    def on_epoch_end(self) -> None:
        self._exchange(on_step=False)  # what was logged at the epoch's end
        super().on_epoch_end()  # type: ignore[misc]

    def on_batch_end(self) -> None:
        self.exchange_step()  # what was logged after the first callbacks of the batch's end
        super().on_batch_end()  # type: ignore[misc]

    def exchange_step(self) -> None:
        if self._is_due():
            self._exchange(on_step=True)

    def _is_due(self) -> bool:
        trainer = self.trainer  # type: ignore[attr-defined]
        loop, every = trainer.fit_loop.epoch_loop, trainer.log_every_n_steps
        if not trainer.training:
            progress = loop.val_loop.batch_progress
            return progress.is_last_batch or bool(every and progress.current.ready % every == 0)
        if any(config.reduce_on_plateau and config.interval == "step" for config in trainer.lr_scheduler_configs):
            return True
        logs = bool(every) and not loop._should_accumulate() and (loop._batches_that_stepped + 1) % every == 0
        return logs or loop._is_training_done or trainer.should_stop

    def _exchange(self, on_step: bool) -> None:
        import torch.distributed as dist

        results = self.trainer._results  # type: ignore[attr-defined]
        of_ranks: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(of_ranks, results.parts(on_step))
        together, left = agreed(of_ranks)
        results.take(on_step, together)
        for key, having in left.items():
            self._leave_out(of_ranks[having[0]][key], having, len(of_ranks))

    def _leave_out(self, part: Part, having: Sequence[int], ranks: int) -> None:
        """All ranks come here alike."""
        name = part.names[-1]
        listed = ", ".join(map(str, having[:8])) + (", …" if len(having) > 8 else "")
        why = f"only rank {listed} of {ranks} logged it" if len(having) < ranks else "it is one rank's own value"
        if decisive := sorted({*part.names} & monitored(self.trainer)):  # type: ignore[attr-defined]
            raise SparkDDPError("SDDP-410", f"{decisive[0]!r} is monitored, and {why}.", SYNCHRONISE)
        if name not in self.told and having[0] == self.trainer.global_rank:  # type: ignore[attr-defined]
            self.told.add(name)
            LOG.warning("The metric %r is left out: %s. %s", name, why, SYNCHRONISE)


def watched(trainer: Any) -> set[str]:
    """Names of the metrics that callbacks decide by."""
    return {m for each in trainer.callbacks if isinstance(m := getattr(each, "monitor", None), str)}


def monitored(trainer: Any) -> set[str]:
    """Names of the metrics that callbacks and learning-rate schedulers decide by."""
    return watched(trainer) | {each.monitor for each in trainer.lr_scheduler_configs if each.reduce_on_plateau}


class SharedMetrics:
    """Puts both in place. `rows`: of this rank in an epoch's training and validation."""

    def __init__(self, rows: tuple[int, int]) -> None:
        self.rows = rows

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        loop, connector = trainer.fit_loop.epoch_loop, trainer._logger_connector
        for owner, training, rows in zip((loop, loop.val_loop), (True, False), self.rows, strict=True):
            shared = type("SharedResults", (_SharedResults, type(owner._results)), {"rows": rows, "trainer": trainer})
            owner._results = shared(training=training)
        connector.__class__ = type("SharedConnector", (_SharedConnector, type(connector)), {"told": set()})

    def on_train_batch_end(self, trainer: Any, module: Any, *batch: Any) -> None:
        # Before the callbacks that keep what was logged at this step.
        trainer._logger_connector.exchange_step()

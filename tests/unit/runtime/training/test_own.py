"""A user's own callbacks and strategies don't write checkpoints and don't start processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pytorch_lightning.callbacks import Callback, ModelCheckpoint

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.training.own import require_no_checkpoint
from airflow_provider_sparkddp.runtime.training.trainer import Seams, build_trainer
from tests.support.refusals import refused
from tests.support.tiny_model import Line

INFO = RankInfo(1, 3, 0, 1, 1, "127.0.0.1", "127.0.0.1", 29500, (), 1, "lo")
DDP = {"$import": "pytorch_lightning.strategies:DDPStrategy"}


class OwnCheckpoint(ModelCheckpoint):
    pass


def made(folder: Path, **arguments: Any) -> Any:
    return build_trainer(arguments, Seams.of(Line(), arguments, INFO, 32), INFO, [], str(folder))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_strategy_that_starts_processes_is_refused(method: str, tmp_path: Path) -> None:
    with refused("SDDP-409", "DDPStrategy that starts processes itself"):
        made(tmp_path, strategy={**DDP, "kwargs": {"start_method": method}})


def test_ones_own_ddp_is_taken(tmp_path: Path) -> None:
    assert made(tmp_path, strategy={**DDP, "kwargs": {"static_graph": True}}).strategy._ddp_kwargs["static_graph"]


def test_a_callback_that_writes_checkpoints_is_refused_also_ones_own() -> None:
    with refused("SDDP-102", "OwnCheckpoint", "best_weights"):
        require_no_checkpoint("pytorch_lightning", [Callback(), OwnCheckpoint()])

"""The user's Trainer arguments reach the Trainer; ours are put beside them, never twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.training.trainer import DEFAULT_MAX_EPOCHS, Seams, build_trainer
from airflow_provider_sparkddp.spec.compat import check_trainer

INFO = RankInfo(1, 3, 0, 1, 1, "127.0.0.1", "127.0.0.1", 29500, (), 1, "lo")
EARLY = {"$import": "pytorch_lightning.callbacks:EarlyStopping", "kwargs": {"monitor": "val_loss"}}


@pytest.fixture
def build(tmp_path: Path) -> Any:
    def built(**arguments: Any) -> Any:
        checked = check_trainer(arguments)
        return build_trainer("pytorch_lightning", checked, Seams.of(checked, INFO), INFO, [], str(tmp_path))

    return built


def test_a_rank_is_a_node_with_one_device_and_its_rank_is_sparks(build: Any) -> None:
    trainer = build(accelerator="cpu")
    assert (trainer.world_size, trainer.global_rank, trainer.num_nodes, trainer.local_rank) == (3, 1, 3, 0)
    assert trainer.max_epochs == DEFAULT_MAX_EPOCHS


def test_the_users_arguments_are_taken_as_they_are_meant(build: Any) -> None:
    trainer = build(max_epochs="3", gradient_clip_val="0.5", limit_train_batches="1", precision="64")
    assert (trainer.max_epochs, trainer.gradient_clip_val, trainer.limit_train_batches) == (3, 0.5, 1)
    assert trainer.precision == "64-true"


@pytest.mark.parametrize("limit", [{"max_steps": 5}, {"max_time": "00:00:01:00"}])
def test_with_another_limit_there_is_no_default_number_of_epochs(build: Any, limit: dict[str, Any]) -> None:
    assert build(**limit).max_epochs != DEFAULT_MAX_EPOCHS


@pytest.mark.parametrize(
    "arguments",
    [
        {"enable_progress_bar": True},
        {"enable_progress_bar": False},
        {"enable_model_summary": True},
        {"enable_checkpointing": False},
        {"logger": False},
        {"logger": None},
        {"sync_batchnorm": False},
        {"fast_dev_run": False},
        {"profiler": None},
    ],
    ids=str,
)
def test_what_the_check_lets_pass_the_trainer_takes(build: Any, arguments: dict[str, Any]) -> None:
    trainer = build(**arguments)
    assert trainer.logger is None
    assert not trainer.checkpoint_callbacks


def test_the_users_callbacks_are_built_from_plain_data(build: Any) -> None:
    assert [callback.monitor for callback in build(callbacks=[EARLY]).early_stopping_callbacks] == ["val_loss"]
    assert [callback.monitor for callback in build(callbacks=EARLY).early_stopping_callbacks] == ["val_loss"]

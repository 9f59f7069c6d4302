"""The user's Trainer arguments reach the Trainer; ours are put beside them, never twice."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from pytorch_lightning.accelerators import CPUAccelerator
from pytorch_lightning.plugins.precision import Precision
from pytorch_lightning.strategies import DDPStrategy
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.training.precision.formats import number_format
from airflow_provider_sparkddp.runtime.training.strategies import choose
from airflow_provider_sparkddp.runtime.training.trainer import DEFAULT_MAX_EPOCHS, Seams, build_trainer
from airflow_provider_sparkddp.spec.compat import check_trainer
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support.tiny_model import Line

HERE = __name__
INFO = RankInfo(1, 3, 0, 1, 1, "127.0.0.1", "127.0.0.1", 29500, (), 1, "lo")
EARLY = {"$import": "pytorch_lightning.callbacks:EarlyStopping", "kwargs": {"monitor": "val_loss"}}


@pytest.fixture
def build(tmp_path: Path) -> Any:
    def built(**arguments: Any) -> Any:
        checked = check_trainer(arguments)
        return build_trainer(checked, Seams.of(Line(), checked, INFO, 32), INFO, [], str(tmp_path))

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


def own(path: str, **kwargs: Any) -> dict[str, Any]:
    return {"$import": path, "kwargs": kwargs}


def test_lightnings_own_strategy_takes_its_own_arguments(build: Any) -> None:
    trainer = build(strategy=own("pytorch_lightning.strategies:DDPStrategy", static_graph=True))
    assert isinstance(trainer.strategy, DDPStrategy)
    assert trainer.strategy._ddp_kwargs == {"static_graph": True}
    assert trainer.strategy.cluster_environment.info == INFO
    assert trainer.world_size == 3


@pytest.mark.parametrize("name", ["auto", "ddp", own("pytorch_lightning.strategies:DDPStrategy")], ids=str)
def test_every_strategy_reduces_whole_numbers_to_their_exact_mean(name: Any, build: Any) -> None:
    with a_group_of_one():
        assert build(strategy=name).strategy.reduce(torch.tensor(3)).dtype == torch.float64


def test_ones_own_accelerator_and_precision_are_built_and_used(build: Any) -> None:
    trainer = build(accelerator=own(f"{HERE}:OwnAccelerator"), precision=own(f"{HERE}:OwnPrecision", scale=3))
    assert type(trainer.accelerator) is OwnAccelerator
    assert type(trainer.strategy.precision_plugin) is OwnPrecision
    assert trainer.strategy.precision_plugin.scale == 3
    assert trainer.strategy.root_device.type == "cpu"


def test_mixed_precision_follows_the_devices_of_ones_own_accelerator(build: Any) -> None:
    trainer = build(accelerator=own(f"{HERE}:MetaAccelerator"), precision="bf16-mixed")
    assert trainer.strategy.precision_plugin.device == "meta"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            {"strategy": own("collections:OrderedDict")},
            "SDDP-409",
            "gives a OrderedDict, which is no pytorch_lightning",
        ),
        ({"strategy": own("lightning.pytorch.strategies:DDPStrategy")}, "SDDP-409", "no pytorch_lightning Strategy"),
        ({"accelerator": own("collections:OrderedDict")}, "SDDP-409", "gives a OrderedDict"),
        ({"accelerator": own(f"{HERE}:AbsentAccelerator")}, "SDDP-409", "not available here"),
        ({"precision": own("collections:OrderedDict")}, "SDDP-409", "no pytorch_lightning Precision"),
        ({"precision": own("nowhere:Precision")}, "SDDP-401", "No module named 'nowhere'"),
        ({"strategy": "model_parallel"}, "SDDP-408", "Line has none"),
        ({"accelerator": "cuda"}, "SDDP-307", "Spark assigned no GPU"),
        ({"accelerator": "mps", "strategy": "single_device"}, "SDDP-104", "it trains one rank"),
    ],
    ids=str,
)
def test_what_a_rank_cannot_have_is_refused(arguments: dict[str, Any], code: str, words: str, build: Any) -> None:
    with pytest.raises(SparkDDPError, match=re.escape(words)) as caught:
        build(**arguments)
    assert caught.value.code == code


@pytest.mark.skipif(torch.cuda.is_available(), reason="it asks for what a computer without CUDA lacks")
@pytest.mark.parametrize(
    ("strategy", "precision", "package"),
    [
        ("deepspeed_stage_2", None, "deepspeed"),
        ("ddp", "transformer-engine", "transformer_engine"),
        ("ddp", "bitsandbytes-nf4", "bitsandbytes"),
    ],
)
def test_a_missing_package_is_named(strategy: str, precision: str | None, package: str) -> None:
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed here")
    with pytest.raises(SparkDDPError, match=f"needs the package '{package}'") as caught:
        choose.strategy("pytorch_lightning", strategy, "cuda", 2, 32)
        number_format("pytorch_lightning", precision, "cuda")
    assert caught.value.code == "SDDP-311"


@pytest.mark.parametrize(
    ("name", "hook"),
    [
        ("ddp_fp16_compress", default_hooks.fp16_compress_hook),
        ("ddp_bf16_compress", default_hooks.bf16_compress_hook),
        ("ddp_powersgd", powerSGD_hook.powerSGD_hook),
        ("ddp_post_localsgd", post_localSGD_hook.post_localSGD_hook),
    ],
)
def test_a_gradient_hook_is_torchs(name: str, hook: Any) -> None:
    with a_group_of_one():
        strategy = choose.strategy("pytorch_lightning", name, "cuda", 2, 32)
    assert isinstance(strategy, DDPStrategy)
    assert strategy._ddp_comm_hook is hook


def test_a_single_rank_has_no_strategy_of_several(tmp_path: Path) -> None:
    alone = replace(INFO, rank=0, world_size=1)
    chosen = Seams.of(Line(), {}, alone, 32)
    assert chosen.strategy_name == "single_device"
    assert build_trainer({}, chosen, alone, [], str(tmp_path)).world_size == 1


class OwnAccelerator(CPUAccelerator):
    pass


class AbsentAccelerator(CPUAccelerator):
    @staticmethod
    def is_available() -> bool:
        return False


class MetaAccelerator(CPUAccelerator):
    @staticmethod
    def get_parallel_devices(devices: Any) -> list[torch.device]:
        return [torch.device("meta")]


class OwnPrecision(Precision):
    def __init__(self, scale: int) -> None:
        self.scale = scale


@contextmanager
def a_group_of_one() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()

"""Hardware, strategy and precision: every combination that is allowed on a CPU trains for real."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from airflow_provider_sparkddp.runtime.models import load_model
from airflow_provider_sparkddp.runtime.models.predict import forward
from airflow_provider_sparkddp.spec import seams
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support import walk

MODELS = walk.MODELS
EPOCHS = walk.EPOCHS


def allowed(*strategies: str) -> list[tuple[str, str, str]]:
    """The combinations with these strategies that a CPU may run."""
    return [
        each
        for each in seams.combinations()
        if each[0] in ("auto", "cpu") and each[1] in strategies and seams.refusal(*each) is None
    ]


SEVERAL = allowed("auto", "ddp", "ddp_find_unused_parameters_true", "model_parallel")
ALONE = allowed("single_device")


def test_no_other_strategy_is_allowed_on_a_cpu() -> None:
    assert sorted(SEVERAL + ALONE) == sorted(allowed(*seams.STRATEGIES))


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> str:
    return walk.line_manifest(tmp_path_factory.mktemp("seams"))


@pytest.mark.parametrize(("combinations", "world_size"), [(SEVERAL, 2), (ALONE, 1)], ids=["two ranks", "one rank"])
def test_every_combination_allowed_on_a_cpu_trains(
    combinations: list[tuple[str, str, str]], world_size: int, local_spark: Any, manifest: str, tmp_path: Path
) -> None:
    reports = walk.combinations(local_spark, tmp_path, manifest, combinations, world_size)
    assert set(reports) == set(combinations)
    for (_, strategy, precision), ranks in reports.items():
        named = ("ddp" if strategy == "auto" else strategy, precision)
        assert [(r["accelerator"], r["strategy"], r["precision"]) for r in ranks] == [("cpu", *named)] * world_size
    for combination, ranks in reports.items():
        walk.require_trained(tmp_path, combination, ranks[0])


def test_layers_that_are_built_when_the_training_starts(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    each = {
        strategy: {"model": f"{MODELS}:Late", "trainer": {"strategy": strategy, "max_epochs": EPOCHS}}
        for strategy in ("ddp", "model_parallel")
    }
    walk.run(local_spark, tmp_path, manifest, each, 2)
    losses = []
    for strategy in each:
        model = load_model(tmp_path / strategy, trusted_modules=[MODELS])
        assert model.parity is not None
        torch.testing.assert_close(forward(model.module, model.parity["inputs"]), model.parity["predictions"])
        losses.append(model.description.training["history"][-1]["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4), "sharding changes where the weights lie, not the training"


def test_ones_own_arguments_for_a_sharded_strategy(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    strategy = {
        "$import": "pytorch_lightning.strategies:ModelParallelStrategy",
        "kwargs": {"data_parallel_size": 2, "tensor_parallel_size": 1},
    }
    each = {"own": {"model": f"{MODELS}:Sharded", "trainer": {"strategy": strategy, "max_epochs": EPOCHS}}}
    ranks = walk.run(local_spark, tmp_path, manifest, each, 2)["own"]
    assert ranks[0]["strategy"] == strategy["$import"]
    assert load_model(tmp_path / "own", trusted_modules=[MODELS]).module.layer.weight.shape == (1, 2)


def test_a_module_that_only_loads_in_a_training_says_so(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    trainer = {"strategy": "model_parallel", "max_epochs": 1}
    walk.run(local_spark, tmp_path, manifest, {"m": {"model": f"{MODELS}:NeedsMesh", "trainer": trainer}}, 2)
    with pytest.raises(SparkDDPError, match=r"only where self\.device_mesh is not None") as caught:
        load_model(tmp_path / "m", trusted_modules=[MODELS])
    assert caught.value.code == "SDDP-403"


def test_the_how_to_s_sharded_model_trains(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs/how-to/choose-a-strategy.md"
    code = next(block for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S) if "class Wide" in block)
    (tmp_path / "wide_model.py").write_text(code)
    local_spark.sparkContext.addPyFile(str(tmp_path / "wide_model.py"))
    each = {"wide": {"model": "wide_model:Wide", "trainer": {"strategy": "model_parallel", "max_epochs": EPOCHS}}}
    history = walk.run(local_spark, tmp_path, manifest, each, 2)["wide"][0]["history"]
    assert history[-1]["loss"] < 0.5 * history[0]["loss"]
    assert (tmp_path / "wide" / "model.json").exists()

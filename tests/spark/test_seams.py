"""Hardware, strategy and precision: every combination that is allowed on a CPU trains for real."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from airflow_provider_sparkddp.runtime.barrier.launch import Launch, launch
from airflow_provider_sparkddp.runtime.barrier.rendezvous import Cores
from airflow_provider_sparkddp.runtime.data.shards import shares_for
from airflow_provider_sparkddp.runtime.models import load_model
from airflow_provider_sparkddp.runtime.models.predict import forward
from airflow_provider_sparkddp.spec import seams
from airflow_provider_sparkddp.spec.manifests import rows_of
from airflow_provider_sparkddp.storage.manifests import read_manifest
from tests.support import partitions

MODELS = "tests.support.tiny_model"
EPOCHS = 3


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
    """y = 2 a - b + 1, 600 rows for two ranks."""
    parts = []
    for seed in range(3):
        a, b = torch.rand(2, 200, generator=torch.Generator().manual_seed(seed)).tolist()
        parts.append({"a": a, "b": b, "y": [2 * x - y + 1 for x, y in zip(a, b, strict=True)]})
    return partitions.write(tmp_path_factory.mktemp("seams"), parts[:2], parts[2:])


def trained(
    spark: Any, folder: Path, manifest: str, combinations: list[tuple[str, str, str]], world_size: int
) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """The ranks' reports of each combination, all trained in one barrier job."""
    each = {}
    for combination in combinations:
        name = "/".join(combination)
        kind = "Sharded" if combination[1] == "model_parallel" else "Line"
        trainer = dict(zip(seams.VALUES, combination, strict=True)) | {"max_epochs": EPOCHS}
        each[name] = {"model": f"{MODELS}:{kind}", "trainer": trainer, "model_folder": f"file://{folder}/{name}"}
    plan = read_manifest(manifest)
    rank_rows = rows_of(shares_for(plan, "train", world_size))
    settings = {
        "manifest": manifest,
        "model_kwargs": {},
        "alias": "line",
        "features": ["a", "b"],
        "target": "y",
        "batch_size": 20,
        "rank_rows": rank_rows,
        "rank_bytes": [0] * world_size,
        "world_size": world_size,
        "progress": f"file://{folder}/progress",
        "each": each,
    }
    work = Launch("tests.support.walk:train_each", settings, f"file://{folder}/failures", Cores(4, 1))
    ranks = launch(spark, work, world_size)
    return {c: [rank["reports"]["/".join(c)] for rank in ranks] for c in combinations}


@pytest.mark.parametrize(("combinations", "world_size"), [(SEVERAL, 2), (ALONE, 1)], ids=["two ranks", "one rank"])
def test_every_combination_allowed_on_a_cpu_trains(
    combinations: list[tuple[str, str, str]], world_size: int, local_spark: Any, manifest: str, tmp_path: Path
) -> None:
    reports = trained(local_spark, tmp_path, manifest, combinations, world_size)
    assert set(reports) == set(combinations)
    for (_, strategy, precision), ranks in reports.items():
        first = ranks[0]
        assert [rank["accelerator"] for rank in ranks] == ["cpu"] * world_size
        assert first["strategy"] == ("ddp" if strategy == "auto" else strategy)
        assert first["precision"] == precision
        assert len(first["history"]) == EPOCHS
        assert first["history"][-1]["loss"] < 0.5 * first["history"][0]["loss"]
        model = load_model("/".join([str(tmp_path), *_folder(reports, ranks)]), trusted_modules=[MODELS])
        assert model.parity is not None
        torch.testing.assert_close(forward(model.module, model.parity["inputs"]), model.parity["predictions"])
        wanted = {"64-true": torch.float64, "bf16-true": torch.bfloat16}.get(precision, torch.float32)
        assert {p.dtype for p in model.module.parameters()} == {wanted}


def _folder(reports: dict[tuple[str, str, str], Any], ranks: Any) -> tuple[str, str, str]:
    return next(combination for combination, found in reports.items() if found is ranks)

"""Many trainings in one barrier job, one after the other in the same Python workers: for tests that walk a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.distributed import PrefixStore

from airflow_provider_sparkddp.runtime.barrier.launch import Launch, launch
from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.barrier.rendezvous import Cores
from airflow_provider_sparkddp.runtime.data.shards import shares_for
from airflow_provider_sparkddp.runtime.models import load_model
from airflow_provider_sparkddp.runtime.models.predict import forward
from airflow_provider_sparkddp.runtime.training.rank import train_rank
from airflow_provider_sparkddp.spec import seams
from airflow_provider_sparkddp.spec.manifests import rows_of
from airflow_provider_sparkddp.storage.manifests import read_manifest
from tests.support import partitions

MODELS = "tests.support.tiny_model"
EPOCHS = 3
Combination = tuple[str, str, str]


def train_each(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Train with each of settings["each"] (additions to the rest of the settings); this rank's reports by their key."""
    rest = {name: value for name, value in settings.items() if name != "each"}
    reports = {
        key: train_rank(info, PrefixStore(key, store), rest | different) for key, different in settings["each"].items()
    }
    return {"rank": info.rank, "reports": reports}


def try_each(info: RankInfo, store: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """As `train_each`, but a training that fails leaves its error's code and text instead of a report.

    A training's "info" is put in the place of what is known of the rank.
    """
    rest = {name: value for name, value in settings.items() if name != "each"}
    reports: dict[str, Any] = {}
    for key, different in settings["each"].items():
        who = replace(info, **different.get("info", {}))
        try:
            reports[key] = train_rank(who, PrefixStore(key, store), rest | different)
        except Exception as error:
            reports[key] = {"code": getattr(error, "code", None), "error": str(error)}
    return {"rank": info.rank, "reports": reports}


def line_manifest(folder: Path) -> str:
    """y = 2 a - b + 1: 400 training rows, 200 held out."""
    parts = []
    for seed in range(3):
        a, b = torch.rand(2, 200, generator=torch.Generator().manual_seed(seed)).tolist()
        parts.append({"a": a, "b": b, "y": [2 * x - y + 1 for x, y in zip(a, b, strict=True)]})
    return partitions.write(folder, parts[:2], parts[2:])


def combinations(
    spark: Any, folder: Path, manifest: str, chosen: list[Combination], world_size: int
) -> dict[Combination, list[dict[str, Any]]]:
    """The ranks' reports of each combination, all trained in one barrier job."""
    each = {}
    for combination in chosen:
        kind = "Sharded" if combination[1] == "model_parallel" else "Line"
        trainer = dict(zip(seams.VALUES, combination, strict=True)) | {"max_epochs": EPOCHS}
        each["/".join(combination)] = {"model": f"{MODELS}:{kind}", "trainer": trainer}
    ranks = run(spark, folder, manifest, each, world_size)
    return {c: ranks["/".join(c)] for c in chosen}


def run(
    spark: Any,
    folder: Path,
    manifest: str,
    each: dict[str, dict[str, Any]],
    world_size: int,
    function: str = "train_each",
) -> dict[str, list[dict[str, Any]]]:
    """Train with each of the settings, all in one barrier job; the ranks' reports by the settings' name."""
    each = {name: given | {"model_folder": f"file://{folder}/{name}"} for name, given in each.items()}
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
        "logs": f"file://{folder}/logs",
        "each": each,
    }
    work = Launch(f"tests.support.walk:{function}", settings, f"file://{folder}/failures", Cores(4, 1))
    ranks = launch(spark, work, world_size)
    return {name: [rank["reports"][name] for rank in ranks] for name in each}


def require_trained(folder: Path, combination: Combination, report: dict[str, Any]) -> None:
    """The loss fell, and the stored model answers as the trained one did, in the number format of its training."""
    assert len(report["history"]) == EPOCHS
    assert report["history"][-1]["loss"] < 0.5 * report["history"][0]["loss"]
    model = load_model(folder.joinpath(*combination), trusted_modules=[MODELS])
    assert model.parity is not None
    torch.testing.assert_close(
        forward(model.module, model.parity["inputs"]), model.parity["predictions"], rtol=1e-3, atol=1e-3
    )
    dtypes = {"64-true": torch.float64, "bf16-true": torch.bfloat16, "16-true": torch.float16}
    assert {p.dtype for p in model.module.parameters()} == {dtypes.get(combination[2], torch.float32)}

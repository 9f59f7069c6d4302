"""The line on real GPUs: a standalone cluster that offers this computer's, NCCL between the ranks."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from airflow_provider_sparkddp.spec import seams
from tests.spark.conftest import start_session, stop_session
from tests.support import jobs, submit, walk
from tests.support.spark_cluster import Worker, cluster

MODELS = Path(__file__).resolve().parents[1] / "support" / "tiny_model.py"
SQL = "SELECT a, b, 2 * a - b + 1 AS y FROM (SELECT rand(1) AS a, rand(2) AS b FROM range(0, 1000, 1, 3))"


def gpus() -> list[str]:
    """Addresses of the GPUs that torch can use here."""
    import torch

    return [str(index) for index in range(torch.cuda.device_count())] if torch.cuda.is_available() else []


def test_every_combination_allowed_on_cuda_trains(tmp_path: Path) -> None:
    addresses = gpus()
    if not addresses:
        pytest.skip("torch finds no CUDA device here")
    needs = {"deepspeed": "deepspeed", "transformer-engine": "transformer_engine", "bitsandbytes": "bitsandbytes"}
    absent = tuple(name for name, package in needs.items() if importlib.util.find_spec(package) is None)
    chosen = [
        each
        for each in seams.combinations()
        if each[0] == "cuda" and seams.refusal(*each) is None and not any(part.startswith(absent) for part in each)
    ]
    # Frozen layers: there is nothing to train without adapters.
    chosen = [each for each in chosen if not each[2].startswith("bitsandbytes") or each[2].endswith("training")]
    alone = [each for each in chosen if each[1] == "single_device"]
    several = [each for each in chosen if each[1] != "single_device"]
    manifest = walk.line_manifest(tmp_path / "data")
    with cluster(tmp_path, [Worker(cores=max(2, len(addresses)), gpus=addresses)]) as running:
        for combinations, ranks in ((several, len(addresses)), (alone, 1)):
            gpu = {"spark.executor.resource.gpu.amount": str(ranks), "spark.task.resource.gpu.amount": "1"}
            spark = start_session(running.master, {**running.conf(), **gpu})
            try:
                reports = walk.combinations(spark, tmp_path, manifest, combinations, ranks)
            finally:
                stop_session(spark)
            for combination, found in reports.items():
                walk.require_trained(tmp_path, combination, found[0])


def test_every_gpu_trains_a_rank_over_nccl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = gpus()
    if not addresses:
        pytest.skip("torch finds no CUDA device here")
    ranks = len(addresses)
    with cluster(tmp_path, [Worker(cores=max(2, ranks), gpus=addresses)]) as running:
        for key, value in submit.connection(running.master).items():
            monkeypatch.setenv(key, value)
        job = jobs.job("partition", tmp_path, source={"sql": SQL}, num_nodes=1, devices=ranks, validation=0.1)
        manifest = submit.submit(job, running.master, running.conf()).values["manifest"]
        given = {"model": "tiny_model:Line", "features": ["a", "b"], "target": "y", "devices": ranks, "num_nodes": 1}
        trainer = {"max_epochs": 2, "accelerator": "cuda"}
        job = jobs.job("train", tmp_path, partitions=manifest, trainer=trainer, executors_timeout=60, **given)
        result = submit.submit(job, running.master, running.conf(), [str(MODELS)])
    assert (result.values["accelerator"], result.values["world_size"]) == ("cuda", ranks)
    assert sorted(gpu for rank in result.report["ranks"] for gpu in rank["gpus"]) == addresses
    for rank in result.report["ranks"]:
        assert rank["gpu_memory_bytes"] > 0
        assert 0 < rank["step_seconds"] < rank["train_seconds"]
    body = json.loads(Path(result.values["model"].removeprefix("file://"), "model.json").read_text())["body"]
    assert body["alias"] == "model"

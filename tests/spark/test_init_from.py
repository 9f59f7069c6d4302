"""Trainings that start from earlier weights, on an embedded Spark: the same ones on every rank, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from airflow_provider_sparkddp.runtime.jobs import train
from airflow_provider_sparkddp.runtime.models import load_model
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support import jobs, partitions, stored

MODELS = "tests.support.started_model"


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """y = 2 a - b + 1, for two ranks."""
    parts = []
    for seed in range(2):
        a, b = torch.rand(2, 64, generator=torch.Generator().manual_seed(seed)).tolist()
        parts.append({"a": a, "b": b, "y": [2 * x - y + 1 for x, y in zip(a, b, strict=True)]})
    return partitions.write(tmp_path_factory.mktemp("start"), parts)


def trained(spark: Any, folder: Path, manifest: str, **settings: Any) -> Any:
    given = {"features": ["a", "b"], "target": "y", "num_nodes": 2, "trainer": {"max_epochs": 1}, **settings}
    return train.run(spark, jobs.job("train", folder, partitions=manifest, **given), jobs.wanted)


@pytest.mark.parametrize("kind", ["Told", "ToldSharded"])
def test_every_rank_begins_with_the_same_stored_weights(
    kind: str, local_spark: Any, manifest: str, tmp_path: Path
) -> None:
    champion = stored.store(tmp_path / "m", f"{MODELS}:{kind}", {"folder": str(tmp_path)}, alias="champion", seed=5)
    begins = {"path": (tmp_path / "m").as_uri(), "strict": True}
    trainer = {"max_epochs": 1, "strategy": "model_parallel" if kind == "ToldSharded" else "ddp"}
    outcome = trained(
        local_spark,
        tmp_path,
        manifest,
        model=f"{MODELS}:{kind}",
        model_kwargs={"folder": str(tmp_path)},
        init_from=begins,
        trainer=trainer,
    )
    wanted = champion.state_dict()
    for rank in range(2):
        found = torch.load(tmp_path / f"rank-{rank}.pt", weights_only=True)
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    # With a learning rate of nought they are also what is stored.
    model = load_model(outcome.values["model"], trusted_modules=[MODELS])
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in model.module.state_dict().items())
    told = outcome.values["init_from"]
    assert (told["path"], told["alias"], told["loaded"]) == (begins["path"], "champion", len(wanted))
    assert model.description.training["init_from"] == told
    assert any("started from 'champion'" in line for line in outcome.summary)


def test_a_second_training_goes_on_where_the_first_ended(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    given = {"model": "tests.support.tiny_model:Line", "trainer": {"max_epochs": 6}}
    first = trained(local_spark, tmp_path, manifest, **given).values
    second = trained(local_spark, tmp_path, manifest, init_from=first, **given).values
    assert second["losses"][0] < first["losses"][-1] < 0.5 * first["losses"][0]
    assert second["init_from"]["sha256"] == first["sha256"]
    assert "init_from" not in first


def test_a_rank_that_cannot_start_says_what_does_not_fit(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    stored.store(tmp_path / "m", "Wide")
    with pytest.raises(SparkDDPError) as caught:
        trained(
            local_spark, tmp_path, manifest, model="tests.support.tiny_model:Line", init_from=(tmp_path / "m").as_uri()
        )
    assert caught.value.code == "SDDP-503"
    assert "2 reshaped: layer.weight (3, 2) into (1, 2)" in caught.value.message

"""Two trainings in one Spark session: the second finds the Python worker as the first one did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.jobs import train
from tests.support import jobs, walk
from tests.support.barrier import FUNCTIONS, run


def trained(spark: Any, folder: Path, manifest: str, **settings: Any) -> dict[str, Any]:
    given = {"model": f"{walk.MODELS}:Line", "features": ["a", "b"], "target": "y", "num_nodes": 2, **settings}
    job = jobs.job("train", folder, partitions=manifest, trainer={"max_epochs": walk.EPOCHS}, **given)
    return train.run(spark, job, jobs.wanted).values


class TestReusedWorkers:
    def test_a_training_leaves_the_python_worker_as_it_was(
        self, local_spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(train, "RANK_FUNCTION", f"{FUNCTIONS}:train_and_look")
        manifest = walk.line_manifest(tmp_path / "data")
        for number in range(2):
            trained(local_spark, tmp_path / str(number), manifest)
        left = [
            [json.loads(path.read_text()) for path in (tmp_path / str(number)).glob("*/left-*.json")]
            for number in range(2)
        ]
        assert [len(each) for each in left] == [2, 2]
        assert {r["pid"] for r in left[0]} == {r["pid"] for r in left[1]}, (
            "no worker was reused, so this proves nothing"
        )
        for rank in left[0]:
            # Made by libraries that this process imported in its first training, and has from then on.
            before, after = rank["before"]["loggers"], rank["after"]["loggers"]
            rank["after"]["loggers"] = {name: after[name] for name in before}
        for rank in (*left[0], *left[1]):
            # A peer that was quicker closes its end of the store.
            assert rank["after"].pop("sockets") <= rank["before"].pop("sockets")
            changed = {name: (value, rank["after"][name]) for name, value in rank["before"].items()}
            assert {name: pair for name, pair in changed.items() if pair[0] != pair[1]} == {}

    def test_a_worker_is_used_again_but_not_after_cuda(self, local_spark: Any, tmp_path: Path) -> None:
        first, after_cuda, last = (
            {r["pid"] for r in run(local_spark, function, tmp_path)} for function in ("pid", "as_after_cuda", "pid")
        )
        assert first == after_cuda, "no worker was reused, so this proves nothing"
        assert not after_cuda & last

"""The ClusterEnvironment alone: Lightning in barrier tasks that a user's own code starts, in reused Python workers."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.support import own_barrier

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/own-barrier-code.md"


@pytest.mark.parametrize("package", own_barrier.MODULES)
def test_ranks_train_together_twice_in_the_same_workers(package: str, local_spark: Any) -> None:
    report = functools.partial(own_barrier.trained, package)
    first, second = own_barrier.run(local_spark, report), own_barrier.run(local_spark, report)
    assert {r["pid"] for r in first} & {r["pid"] for r in second}, "no worker was reused, so this proves nothing"
    for ranks in (first, second):
        assert [r["seen"] for r in ranks] == [[0, 2, 0, 2, "0"], [1, 2, 1, 2, "1"]]
        assert ranks[0]["weights"] == ranks[1]["weights"], "trained apart"
        assert all(r["restored"] and not r["group"] for r in ranks)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"num_nodes": 3}, "num_nodes x devices = 3 ranks, and Spark started 2 tasks"),
        ({"devices": 2}, "(num_nodes x devices = 4 ranks|counts Spark's task 1 as rank 2)"),
        (
            {"num_nodes": 1, "strategy": "auto"},
            "no Trainer used the environment: each of Spark's 2 tasks ran for itself",
        ),
    ],
    ids=["too many nodes", "too many devices", "each for itself"],
)
def test_a_trainer_with_other_ranks_than_sparks_is_an_error(
    arguments: dict[str, Any], told: str, local_spark: Any
) -> None:
    # Of a barrier stage that failed pyspark passes Java's exception on.
    with pytest.raises(Py4JJavaError, match=rf"SDDP-414[\s\S]*{told}[\s\S]*environment.world_size\(\)"):
        own_barrier.run(local_spark, functools.partial(own_barrier.trained, "pytorch_lightning", **arguments))


def test_outside_of_a_barrier_task_it_says_so(local_spark: Any) -> None:
    with pytest.raises(PySparkException, match=r"SDDP-414[\s\S]*outside of a barrier task[\s\S]*barrier=True"):
        own_barrier.run(local_spark, functools.partial(own_barrier.trained, "pytorch_lightning"), barrier=False)


def test_the_how_to_page_runs_as_it_stands(local_spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(code) == 1
    # As in a script: what it defines travels to the tasks by value.
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(code[0], names)
    weights = names["weights"]
    assert sorted(row["rank"] for row in weights) == [0, 1]
    assert weights[0]["weight"] == weights[1]["weight"] == pytest.approx(3, abs=0.3)
    assert str(weights) in capsys.readouterr().out

"""What keeps a training of several ranks honest: metrics of all rows, NaN, early stopping, the best weights, seeds, clear errors."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from airflow_provider_sparkddp.runtime.models import load_model
from tests.support import partitions, walk

MODELS = "tests.support.watched_model"
TWO, THREE = (0, 1), (0, 1, 2)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """y = 2 a - b + 1: 77 training rows, 11 held out; no number of ranks above 1 divides them."""
    tables = []
    for seed, rows in enumerate((47, 30, 11)):
        a, b = torch.rand(2, rows, generator=torch.Generator().manual_seed(seed)).tolist()
        tables.append({"a": a, "b": b, "y": [2 * x - y + 1 for x, y in zip(a, b, strict=True)]})
    return partitions.write(tmp_path_factory.mktemp("guards"), tables[:2], tables[2:])


class Run:
    """Trainings of one barrier job: the ranks' reports by name, and what each left in its folder."""

    def __init__(
        self, spark: Any, folder: Path, manifest: str, world_size: int, each: dict[str, dict[str, Any]]
    ) -> None:
        self.folder = folder
        for name, given in each.items():
            folder.joinpath(name).mkdir()
            kwargs = {k: str(folder / name) if v is Ellipsis else v for k, v in given.get("model_kwargs", {}).items()}
            trainer = {"max_epochs": 1, **given.get("trainer", {})}
            each[name] = {
                "batch_size": 8,
                **given,
                "model": f"{MODELS}:{given['model']}",
                "model_kwargs": kwargs,
                "trainer": trainer,
            }
        self.reports = walk.run(spark, folder, manifest, each, world_size, "try_each")

    def left(self, name: str, rank: int) -> Any:
        return json.loads(next((self.folder / name).glob(f"rank-{rank}*.json")).read_text())

    def failures(self, name: str) -> list[tuple[str | None, str]]:
        return [(report.get("code"), report.get("error", "")) for report in self.reports[name]]

    def module(self, name: str) -> Any:
        return load_model(str(self.folder / name), trusted_modules=[MODELS]).module


LEFT = {"model_kwargs": {"folder": ...}}
LOGS = {"model": "Logs", **LEFT, "trainer": {"max_epochs": 2, "log_every_n_steps": 2}}
SKIP = {"model": "NoisyRows", "on_nan": "skip"}
WATCH = {"best_weights": {"monitor": "val_mae", "mode": "min"}, "trainer": {"max_epochs": 4}}
CASES: dict[str, dict[str, Any]] = {
    "logs": LOGS,
    # The third batch of rank 0 has 7 rows, that of rank 1 has 8.
    "three steps": {**LOGS, "trainer": {"log_every_n_steps": 2, "limit_train_batches": 3}},
    "plateau": {"model": "Plateau", **LEFT, "trainer": {"max_epochs": 4}},
    "stopped by both": {
        "model": "Plateau",
        **LEFT,
        "trainer": {"max_epochs": 9},
        "early_stopping": {"monitor": "val", "patience": 2},
    },
    "of one rank": {"model": "OfOneRank", **LEFT, **WATCH},
    "too late": {
        "model": "AtTheEnd",
        **LEFT,
        "early_stopping": {"monitor": "train_mae", "check_on_train_epoch_end": True},
    },
    "skip": {**SKIP, "model_kwargs": {"bad": [1, 3], "folder": ...}},
    "skip by hand": {**SKIP, "model_kwargs": {"bad": [1, 3], "folder": ..., "manual": True}},
    "skip of two batches": {
        **SKIP,
        "model_kwargs": {"bad": [0], "folder": ...},
        "trainer": {"accumulate_grad_batches": 2},
    },
    "skip sharded": {
        "model": "ShardedNoisyRows",
        "on_nan": "skip",
        "model_kwargs": {"bad": [1]},
        "trainer": {"strategy": "model_parallel"},
    },
    "skip all": {**SKIP, "model_kwargs": {"bad": list(range(9))}},
    "infinite": {"model": "InfiniteLoss"},
    "infinite by hand": {"model": "InfiniteLoss", "model_kwargs": {"manual": True}},
    "infinite in the first of two": {"model": "InfiniteLoss", "trainer": {"accumulate_grad_batches": 3}},
    "best": {"model": "Worsens", **WATCH},
    "best sharded": {"model": "ShardedWorsens", **WATCH, "trainer": {"max_epochs": 4, "strategy": "model_parallel"}},
    "best is highest": {"model": "Worsens", **WATCH, "best_weights": {"monitor": "val_mae", "mode": "max"}},
    "best unknown": {"model": "Worsens", "best_weights": {"monitor": "val_mea", "mode": "min"}},
    "stopping": {
        "model": "Worsens",
        "trainer": {"max_epochs": 9},
        "early_stopping": {"monitor": "val_mae", "patience": 2},
    },
    "stopping unknown": {"model": "Worsens", "trainer": {"max_epochs": 9}, "early_stopping": {"monitor": "val_mea"}},
    "dropout": {"model": "Dropout", **LEFT, "trainer": {"max_epochs": 2}},
    "dropout again": {"model": "Dropout", **LEFT, "trainer": {"max_epochs": 2}},
    "dropout, quiet validation": {
        "model": "Dropout",
        "model_kwargs": {"folder": ..., "noisy_validation": False},
        "trainer": {"max_epochs": 2, "val_check_interval": 2},
    },
    "unused": {"model": "Unused"},
    "unused later": {"model": "Unused", "model_kwargs": {"since": 2}},
    "unused by hand": {"model": "Unused", "model_kwargs": {"since": 2, "manual": True}},
    "unused and found": {"model": "Unused", "trainer": {"strategy": "ddp_find_unused_parameters_true"}},
    "no loss": {"model": "NoLoss"},
    "no optimizer": {"model": "NoOptimizer"},
    "prepares": {"model": "Prepares", **LEFT},
    "prepares on two hosts": {"model": "Prepares", **LEFT, "info": {"local_rank": 0}},
    "prepares once": {
        "model": "Prepares",
        "model_kwargs": {"folder": ..., "per_node": False},
        "info": {"local_rank": 0},
    },
}


@pytest.fixture(scope="module")
def two(local_spark: Any, manifest: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(local_spark, tmp_path_factory.mktemp("two"), manifest, 2, dict(CASES))


@pytest.fixture(scope="module")
def three(local_spark: Any, manifest: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(local_spark, tmp_path_factory.mktemp("three"), manifest, 3, {"logs": LOGS})


@pytest.fixture(scope="module")
def alone(local_spark: Any, manifest: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(local_spark, tmp_path_factory.mktemp("alone"), manifest, 1, {"logs": LOGS})


class TestMetrics:
    def test_what_ranks_log_is_what_one_process_logs(self, alone: Run, two: Run, three: Run) -> None:
        expected = alone.left("logs", 0)["metrics"]
        of_steps = {"train_step", "train_both_step", "train_max_step"}
        of_one_rank = {name for name in expected if name.startswith("of_one_rank")}
        assert len(of_one_rank) == 4
        for run, ranks in ((two, TWO), (three, THREE)):
            for rank in ranks:
                shown = run.left("logs", rank)["metrics"]
                assert set(shown) == set(expected) - of_one_rank
                for name in set(shown) - of_steps:
                    assert shown[name] == pytest.approx(expected[name], rel=1e-6), (name, rank)

    def test_a_steps_value_is_that_of_all_rows_and_shown_when_loggers_log(self, two: Run) -> None:
        left = [two.left("three steps", rank) for rank in TWO]
        steps = list(zip(*(each["steps"] for each in left), strict=True))
        assert [s["rows"] for s in steps[2]] == [7, 8]
        means = [sum(s["mean"] * s["rows"] for s in step) / sum(s["rows"] for s in step) for step in steps]
        for each in left:
            assert each["metrics"]["train_step"] == pytest.approx(means[2], rel=1e-6)
            assert each["metrics"]["train_max_step"] == pytest.approx(max(s["max"] for s in steps[2]), rel=1e-6)
            assert each["steps"][0]["shown"] is None
            assert [step["shown"] for step in each["steps"][1:]] == pytest.approx(means[1:], rel=1e-6)
        logged = two.reports["three steps"][0]["logged"]
        kept = [
            v
            for s, n, v in zip(logged["step"], logged["name"], logged["value"], strict=True)
            if (s, n) == (2, "train_step")
        ]
        assert kept == pytest.approx([means[1]], rel=1e-6)

    def test_history_and_result_hold_no_value_of_one_rank(self, two: Run) -> None:
        report = two.reports["logs"][0]
        names = set(report["metrics"]) | {name for entry in report["history"] for name in entry["metrics"]}
        assert "val" in names and not any(name.startswith("of_one_rank") for name in names)

    def test_a_scheduler_takes_the_same_step_on_every_rank(self, two: Run) -> None:
        # The mean over all rows, 5 of rank 0 and 6 of rank 1, falls.
        assert [two.left("plateau", rank) for rank in TWO] == [0.1, 0.1]

    @pytest.mark.parametrize(
        ("name", "why"),
        [("of one rank", "'val_mae' is monitored, and only rank 0 of 2 logged it"), ("too late", "'train_mae' is mon")],
    )
    def test_what_is_one_ranks_own_is_not_monitored(self, name: str, why: str, two: Run) -> None:
        for code, error in two.failures(name):
            assert (code, why in error) == ("SDDP-410", True), error


class TestNan:
    @pytest.mark.parametrize("name", ["skip", "skip by hand"])
    def test_a_step_that_is_bad_on_one_rank_is_skipped_by_all(self, name: str, two: Run) -> None:
        states = [two.left(name, rank) for rank in TWO]
        for state in states:
            same = [step for step in range(1, len(state)) if state[step] == state[step - 1]]
            assert same == [1, 3], "weights, momentum, statistics or learning rate changed in a skipped step"
        assert [s[1:5] for s in states[0]] == [s[1:5] for s in states[1]]
        report = two.reports[name][0]
        assert report["skipped_steps"] == 2
        assert math.isfinite(report["metrics"]["val_mae"])

    def test_a_bad_batch_spoils_the_step_that_it_is_accumulated_to(self, two: Run) -> None:
        before, after = two.left("skip of two batches", 0)[0], two.left("skip of two batches", 0)[1]
        assert before[1:5] == after[1:5]
        assert two.reports["skip of two batches"][0]["skipped_steps"] == 1
        assert "NaN" not in json.dumps([two.left("skip of two batches", rank)[-1] for rank in TWO])

    def test_a_sharded_model_skips_too(self, two: Run) -> None:
        assert two.reports["skip sharded"][0]["skipped_steps"] == 1
        assert all(torch.isfinite(p).all() for p in two.module("skip sharded").parameters())

    def test_the_mean_loss_is_over_the_rows_that_have_one(self, two: Run) -> None:
        assert math.isfinite(two.reports["skip"][0]["history"][0]["loss"])

    def test_an_epoch_of_skipped_steps_fails_on_all_ranks(self, two: Run) -> None:
        for code, error in two.failures("skip all"):
            assert (code, "all 5 steps of epoch 0 were skipped" in error) == ("SDDP-406", True), error

    @pytest.mark.parametrize(
        ("name", "step"), [("infinite", 1), ("infinite by hand", 1), ("infinite in the first of two", 0)]
    )
    def test_an_infinite_loss_stops_naming_rank_epoch_and_step(self, name: str, step: int, two: Run) -> None:
        code, error = two.failures(name)[1]
        assert code == "SDDP-406"
        assert f"the loss is inf on rank 1 at epoch 0, step {step}" in error


class TestBest:
    @pytest.mark.parametrize("name", ["best", "best sharded"])
    def test_the_model_has_the_weights_of_the_best_validation(self, name: str, two: Run) -> None:
        report = two.reports[name][0]
        assert report["best"] == {"monitor": "val_mae", "mode": "min", "value": 1.0, "epoch": 1, "step": 10}
        assert report["metrics"] == {"val_mae": 1.0, "val_rows": 11.0}
        assert report["epochs"] == 4
        assert two.module(name).layer.bias.tolist() == [1.0]

    def test_the_highest_where_that_is_asked_for(self, two: Run) -> None:
        assert two.reports["best is highest"][0]["best"]["epoch"] == 0
        assert two.module("best is highest").layer.bias.tolist() == [0.0]

    def test_early_stopping_stops_all_ranks(self, two: Run) -> None:
        assert two.reports["stopping"][0]["epochs"] == 4, "two epochs after the best"
        assert two.reports["stopped by both"][0]["epochs"] == 9, "the mean over all rows falls"

    @pytest.mark.parametrize(("name", "argument"), [("best", "best_weights"), ("stopping", "early_stopping")])
    def test_a_metric_that_nobody_logs_is_told_with_what_is_logged(self, name: str, argument: str, two: Run) -> None:
        for code, error in two.failures(f"{name} unknown"):
            assert code == "SDDP-410"
            assert f"{argument} monitors 'val_mea'" in error
            assert "Logged: val_mae, val_rows. What to do: Did you mean 'val_mae'?" in error


class TestSeeds:
    def test_ranks_and_epochs_draw_different_numbers_and_have_the_same_weights(self, two: Run) -> None:
        ranks = [two.left("dropout", rank) for rank in TWO]
        drawn = [number for rank in ranks for epoch in rank["draws"] for number in epoch]
        assert len(drawn) == len(set(drawn)) == 12
        assert ranks[0]["weights"] == ranks[1]["weights"]

    @pytest.mark.parametrize("other", ["dropout again", "dropout, quiet validation"])
    def test_the_same_seed_gives_the_same_bits_whatever_validation_draws(self, other: str, two: Run) -> None:
        assert [two.left(other, rank) for rank in TWO] == [two.left("dropout", rank) for rank in TWO]


class TestErrors:
    @pytest.mark.parametrize("name", ["unused", "unused later", "unused by hand"])
    def test_parameters_without_gradient_are_named(self, name: str, two: Run) -> None:
        code, error = two.failures(name)[1]
        assert code == "SDDP-411", error
        assert "on rank 1 the loss gives 2 of 4 parameters no gradient" in error
        assert "head.other.weight, head.other.bias" in error and "ddp_find_unused_parameters_true" in error

    def test_the_strategy_that_is_offered_trains_them(self, two: Run) -> None:
        assert two.reports["unused and found"][0]["epochs"] == 1

    def test_a_step_without_a_loss_is_named(self, two: Run) -> None:
        code, error = two.failures("no loss")[1]
        assert (code, "returned None on rank 1, epoch 0, step 1" in error) == ("SDDP-412", True), error

    def test_a_model_without_an_optimizer_is_refused(self, two: Run) -> None:
        for code, error in two.failures("no optimizer"):
            assert (code, "NoOptimizer.configure_optimizers returned None" in error) == ("SDDP-413", True), error


@pytest.mark.parametrize(
    ("name", "ranks"), [("prepares", ["0"]), ("prepares on two hosts", ["0", "1"]), ("prepares once", ["0"])]
)
def test_data_is_prepared_once_a_host(name: str, ranks: list[str], two: Run) -> None:
    assert sorted(p.name.rpartition("-")[2] for p in (two.folder / name).glob("prepared-*")) == ranks

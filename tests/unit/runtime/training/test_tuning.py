"""Tuning by Lightning's own Tuner: what it finds, what it leaves as it was, and what it can't find."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.distributed as dist

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.data.dataset import RankLoader
from airflow_provider_sparkddp.runtime.training import start
from airflow_provider_sparkddp.runtime.training.trainer import Seams
from airflow_provider_sparkddp.runtime.training.tuning import POINTS, Tuning, found, use
from tests.support import other_model
from tests.support.refusals import refused
from tests.support.tiny_model import Late, Line

FIRST = RankInfo(0, 3, 0, 1, 0, "127.0.0.1", "127.0.0.1", 29500, (), 1, "lo")
ROWS, FEWEST, BATCH_SIZE = 300, 290, 20


def tuning(module: Any, rank: int = 0, **trainer: Any) -> Tuning:
    info = replace(FIRST, rank=rank)
    x = torch.rand(ROWS, 2, generator=torch.Generator().manual_seed(0))
    loader = RankLoader(x, 2 * x[:, 0] - x[:, 1] + 1, ROWS // BATCH_SIZE, 0, 0)
    return Tuning(module, Seams.of(module, trainer, info, BATCH_SIZE), info, trainer, loader, FEWEST)


@pytest.mark.parametrize("kind", [Line, other_model.Line])
def test_the_learning_rate_is_found_told_to_all_ranks_and_used(kind: Any) -> None:
    store = dist.HashStore()
    first, second = kind(), kind()
    result = found(tuning(first), {"lr": {}}, store)
    assert found(tuning(second, rank=1), {"lr": {}}, store) == result
    lr = result["lr"]
    assert 1e-8 < lr["suggestion"] < 1
    assert lr["suggestion"] != 0.1, "the one that the module came with"
    assert 10 <= len(lr["points"]) <= POINTS
    for module in (first, second):
        assert module.learning_rate == 0.1
        kwargs = use(tuning(module), result, {"num_features": 2, "learning_rate": 0.1})
        assert kwargs == {"num_features": 2, "learning_rate": lr["suggestion"]}
        assert module.learning_rate == module.hparams.learning_rate == lr["suggestion"]
        assert module.hparams_initial["learning_rate"] == lr["suggestion"], "a logger would be told another"


def test_a_rate_that_is_no_argument_of_the_constructor_leaves_them_alone() -> None:
    result = {"lr": {"attribute": "learning_rate", "suggestion": 0.5}}
    module = Line()
    assert use(tuning(module), result, {"num_features": 2}) == {"num_features": 2}
    assert module.learning_rate == 0.5


def test_nothing_is_left_of_the_search() -> None:
    torch.manual_seed(3)
    module = Noisy()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    state, prepared = torch.get_rng_state(), tuning(module)
    found(prepared, {"lr": {"num_training": 15}, "batch_size": {"init_val": 200}}, dist.HashStore())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert module.training
    assert module.learning_rate == 0.1
    assert prepared.train.epoch == 0


@pytest.mark.parametrize(
    ("asked", "size", "tried"),
    [
        ({"mode": "power"}, 4, [2, 4, 8]),
        ({"mode": "binsearch", "init_val": 4, "margin": 0.0}, 6, [4, 8, 6, 7]),
        ({"mode": "power", "max_val": 3}, 3, [2, 3]),
        ({"init_val": 500, "max_val": 5}, 5, [5]),
    ],
    ids=str,
)
def test_the_batch_size_is_the_largest_that_fits(asked: dict[str, Any], size: int, tried: list[int]) -> None:
    result = found(tuning(Greedy()), {"batch_size": asked}, dist.HashStore())["batch_size"]
    assert result["suggestion"] == size
    assert result["tried"][: len(tried)] == tried


def test_no_batch_is_larger_than_the_smallest_ranks_rows() -> None:
    result = found(tuning(Line()), {"batch_size": {"init_val": 200}}, dist.HashStore())["batch_size"]
    assert (result["suggestion"], result["limit"], result["tried"][-1]) == (FEWEST, FEWEST, FEWEST)


def test_a_module_that_knows_its_batch_size_is_told() -> None:
    module = Line()
    module.batch_size = 1
    use(tuning(module), {"batch_size": {"suggestion": 64}}, {})
    assert module.batch_size == 64


def test_the_rate_is_searched_with_the_batch_size_that_was_found() -> None:
    module = Counting()
    found(tuning(module), {"batch_size": {"init_val": 50, "max_val": 50}, "lr": {"num_training": 15}}, dist.HashStore())
    assert Counting.sizes[-15:] == [50] * 15


@pytest.mark.parametrize(
    ("module", "asked", "words"),
    [
        ("Unrated", {}, "has no attribute or hyperparameter 'lr' or 'learning_rate'"),
        ("Line", {"attr_name": "rate"}, "has no attribute or hyperparameter 'rate'"),
        ("Diverging", {}, "without a suggestion"),
        ("Two", {}, "only works with single optimizer"),
    ],
)
def test_what_cannot_be_found_says_what_to_do(module: str, asked: dict[str, Any], words: str) -> None:
    with refused("SDDP-415", words):
        found(tuning(globals()[module]()), {"lr": asked}, dist.HashStore())


def test_weights_that_come_when_the_training_starts_are_none_to_search_with() -> None:
    module = Late()
    start.begin(module, {"path": "file:///m", "sha256": "", "alias": "m", "warnings": []}, torch.float32)
    with refused("SDDP-103", "tune and init_from are set, and Late has a configure_model"):
        found(tuning(module), {"lr": {}}, dist.HashStore())


def test_objects_among_the_hyperparameters_do_no_harm() -> None:
    module = Line()
    module.save_hyperparameters({"thing": object(), "learning_rate": 0.1})
    assert found(tuning(module), {"lr": {"num_training": 20}}, dist.HashStore())["lr"]["suggestion"]


class Noisy(Line):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.noise = torch.nn.BatchNorm1d(2), torch.nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        return super().forward(self.noise(self.norm(x)))


class Greedy(Line):
    """Has memory for 6 rows."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if len(batch[0]) > 6:
            raise RuntimeError("CUDA out of memory. Tried to allocate more rows than 6")
        return super().training_step(batch, batch_idx)


class Counting(Line):
    sizes: list[int] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.sizes.append(len(batch[0]))
        return super().training_step(batch, batch_idx)


class Unrated(Line):
    def __init__(self) -> None:
        super().__init__()
        del self.learning_rate, self.hparams["learning_rate"]


class Diverging(Line):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return super().training_step(batch, batch_idx) * 10.0**self.global_step


class Two(Line):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False

    def configure_optimizers(self) -> Any:
        return [torch.optim.SGD(self.parameters(), lr=self.learning_rate) for _ in range(2)]

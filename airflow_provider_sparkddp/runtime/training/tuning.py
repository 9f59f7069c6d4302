"""What is found before training, on rank 0 alone, by Lightning's own Tuner: the batch size, then the learning rate.

The other ranks wait at the store, not in a collective: how long it takes nobody knows before. What is tried is tried on copies of
the module, so that training starts from the same weights and random numbers as without.
"""

from __future__ import annotations

import copy
import gc
import importlib
import json
import math
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.data.dataset import RankLoader
from airflow_provider_sparkddp.runtime.training.trainer import Seams, build_trainer
from airflow_provider_sparkddp.spec.errors import SparkDDPError

# How long the other ranks wait for rank 0; they end earlier when it fails, as Spark ends them.
LONGEST = timedelta(days=2)
# Points of the search that are kept for the result.
POINTS = 50
# The user's Trainer arguments that matter for one step; the others say how long to train and what to watch.
KEPT = (
    "accumulate_grad_batches",
    "gradient_clip_val",
    "gradient_clip_algorithm",
    "deterministic",
    "benchmark",
    "detect_anomaly",
)
STORE_KEY = "sparkddp/tune"
LR_NAMES = ("lr", "learning_rate")


@dataclass(frozen=True)
class Tuning:
    """What the search works with.

    Attributes:
        train: rank 0's own training rows, in the batches of the training.
        fewest: rows of the rank that has fewest: no batch can be larger.
    """

    module: Any
    seams: Seams
    info: RankInfo
    trainer: Mapping[str, Any]
    train: RankLoader
    fewest: int


def found(tuning: Tuning, asked: Mapping[str, Any], store: Any) -> dict[str, Any]:
    """What rank 0 finds, on every rank: {"lr": {"suggestion", …}, "batch_size": {"suggestion", …}}, with those that are asked for.

    Args:
        asked: as `check_tune` leaves it.
        store: where the ranks met.

    Raises:
        SparkDDPError: SDDP-103 where rank 0 has no whole model to search with, SDDP-415 on rank 0 when nothing is found.
    """
    if tuning.seams.sharded:
        raise SparkDDPError(
            "SDDP-103",
            "tune is set with a sharded strategy: one rank couldn't hold the whole model.",
            "Leave tune out.",
        )
    if "configure_model" in vars(tuning.module):
        # start.begin put it there: a copy would load the weights into the training's own layers.
        raise SparkDDPError(
            "SDDP-103",
            f"tune and init_from are set, and {type(tuning.module).__name__} has a configure_model: it has no weights to search with "
            "before the training starts.",
            "Build the layers in __init__, or set one of the two.",
        )
    if "lr" in asked:
        attribute(tuning, asked["lr"].get("attr_name"))
    if tuning.info.rank == 0:
        store.set(STORE_KEY, json.dumps(_search(tuning, asked)))
    store.wait([STORE_KEY], LONGEST)
    return dict(json.loads(store.get(STORE_KEY)))


def attribute(tuning: Tuning, name: str | None) -> str:
    """The module's attribute, or hyperparameter, that holds the learning rate. Raises SparkDDPError SDDP-415 without one."""
    parsing = importlib.import_module(f"{tuning.seams.package}.utilities.parsing")
    for each in [name] if name else LR_NAMES:
        if parsing.lightning_hasattr(tuning.module, each):
            return each
    wanted = repr(name) if name else " or ".join(map(repr, LR_NAMES))
    raise SparkDDPError(
        "SDDP-415",
        f"tune asks for the learning rate, and {type(tuning.module).__name__} has no attribute or hyperparameter {wanted}.",
        "Keep it as self.lr or self.learning_rate, which configure_optimizers uses, or name it by tune={'lr': {'attr_name': …}}.",
    )


def use(tuning: Tuning, result: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Set what was found on the module and its hyperparameters; the arguments that rebuild it, with it where they hold it."""
    parsing, module, used = (
        importlib.import_module(f"{tuning.seams.package}.utilities.parsing"),
        tuning.module,
        dict(kwargs),
    )
    for name, value in _values(result).items():
        if parsing.lightning_hasattr(module, name):
            parsing.lightning_setattr(module, name, value)
        if name in getattr(module, "_hparams_initial", {}):
            module._hparams_initial[name] = value  # what loggers are given
        if name in used:
            used[name] = value
    return used


def _values(result: Mapping[str, Any]) -> dict[str, Any]:
    """Attribute -> what was found for it. A module needn't know its batch size; where it does, it is told."""
    found = {result["lr"]["attribute"]: result["lr"]["suggestion"]} if "lr" in result else {}
    return found | ({"batch_size": result["batch_size"]["suggestion"]} if "batch_size" in result else {})


def _search(tuning: Tuning, asked: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    with _as_before(tuning.seams), tempfile.TemporaryDirectory(prefix="sparkddp-tune-") as root:
        if "batch_size" in asked:
            result["batch_size"] = _batch_size(tuning, asked["batch_size"], root)
            tuning = replace(tuning, train=_whole_batches(tuning.train, result["batch_size"]["suggestion"]))
        if "lr" in asked:
            result["lr"] = _learning_rate(tuning, asked["lr"], root)
    return result


@contextmanager
def _as_before(chosen: Seams) -> Iterator[None]:
    """Random numbers go on as if nothing had been tried, and the memory of the copies is free."""
    import torch

    seed = importlib.import_module(f"{chosen.package}.utilities.seed")
    with seed.isolate_rng(include_cuda=chosen.hardware.device == "cuda"), warnings.catch_warnings():
        # The search validates nothing, on purpose.
        warnings.filterwarnings("ignore", message="You defined a `validation_step` but have no")
        warnings.filterwarnings("ignore", message="Total length of `list` across ranks is zero")
        yield
    gc.collect()
    torch.cuda.empty_cache()


def _tuner(tuning: Tuning, root: str) -> Any:
    package = tuning.seams.package
    chosen = tuning.seams.alone((_in_memory(package),))
    kept = {name: tuning.trainer[name] for name in KEPT if tuning.trainer.get(name) is not None}
    # Each search ends by its own number of steps.
    alone = replace(tuning.info, rank=0, world_size=1)
    trainer = build_trainer({**kept, "max_epochs": 1_000_000}, chosen, alone, [], root)
    return importlib.import_module(f"{package}.tuner").Tuner(trainer)


def _learning_rate(tuning: Tuning, arguments: Mapping[str, Any], root: str) -> dict[str, Any]:
    name, started = attribute(tuning, arguments.get("attr_name")), time.monotonic()
    train, module = tuning.train, copy.deepcopy(tuning.module)
    # Not the training's own loader: a loader counts its epochs.
    batches = RankLoader(train.x, train.y, len(train), train.seed, train.rank)
    given = {**arguments, "attr_name": name, "update_attr": False}
    with _in_our_words(tuning.seams.package):
        finder = _tuner(tuning, root).lr_find(module, train_dataloaders=batches, **given)
    suggestion = finder.suggestion() if finder else None
    points = list(zip(finder.results["lr"], finder.results["loss"], strict=False)) if finder else []
    if suggestion is None:
        raise SparkDDPError(
            "SDDP-415",
            f"the search for a learning rate ended after {len(points)} steps without a suggestion.",
            "Raise num_training, lower max_lr or set early_stop_threshold to None in tune={'lr': {…}}, or set the learning rate "
            "by model_kwargs.",
        )
    return {
        "suggestion": suggestion,
        "attribute": name,
        "points": [[lr, loss if math.isfinite(loss) else None] for lr, loss in _thinned(points)],
        "seconds": round(time.monotonic() - started, 3),
    }


def _batch_size(tuning: Tuning, arguments: Mapping[str, Any], root: str) -> dict[str, Any]:
    limit, started = min(tuning.fewest, arguments.get("max_val", tuning.fewest)), time.monotonic()
    rows = _rows(tuning.seams.package, tuning.train, limit)
    rows.batch_size = min(arguments.get("init_val", 2), limit)
    # In "power" Lightning gives back a size at max_val that it never tried: the limit is told as the number of rows instead.
    given = {**arguments, "init_val": rows.batch_size, "max_val": 2**31}
    with _in_our_words(tuning.seams.package):
        size = _tuner(tuning, root).scale_batch_size(copy.deepcopy(tuning.module), datamodule=rows, **given)
    return {
        "suggestion": max(1, min(int(size), limit)),
        "tried": rows.tried[-POINTS:],
        "limit": limit,
        "seconds": round(time.monotonic() - started, 3),
    }


@contextmanager
def _in_our_words(package: str) -> Iterator[None]:
    """What Lightning's Tuner refuses, such as two optimizers."""
    refused = importlib.import_module(f"{package}.utilities.exceptions").MisconfigurationException
    try:
        yield
    except refused as error:
        raise SparkDDPError(
            "SDDP-415", f"Lightning's Tuner says: {error}", "Leave tune out, or change what it names."
        ) from error


def _thinned(points: Sequence[Any]) -> list[Any]:
    """At most POINTS of them, evenly."""
    step = max(1, -(-len(points) // POINTS))
    return list(points[::step])


def _whole_batches(loader: RankLoader, size: int) -> RankLoader:
    """Batches of exactly `size` rows; the rows that are left over are left out. Needs as many rows."""
    steps = len(loader.x) // size
    return RankLoader(loader.x[: steps * size], loader.y[: steps * size], steps, loader.seed, loader.rank)


class _Rows:
    """The body of a data module with a batch size that can be set.

    Attributes:
        tried: sizes in the order in which they were asked for.
    """

    def __init__(self, loader: RankLoader, limit: int) -> None:
        super().__init__()
        self.loader, self.limit, self.batch_size = loader, limit, 1
        self.tried: list[int] = []

    def train_dataloader(self) -> RankLoader:
        size = min(self.batch_size, self.limit)
        if self.tried[-1:] != [size]:
            self.tried.append(size)
        batches: Any = _whole_batches(self.loader, size)
        # Lightning takes no size above the length of the data set.
        batches.dataset = range(self.limit)
        return batches

    def val_dataloader(self) -> list[Any]:
        """None: a step that trains needs more memory than one that only computes the loss."""
        return []


def _rows(package: str, loader: RankLoader, limit: int) -> Any:
    """A LightningDataModule of the given package."""
    base = importlib.import_module(package).LightningDataModule
    return type("Rows", (_Rows, base), {})(loader, limit)


class _InMemory:
    """The body of a checkpoint IO: the Tuner puts the module back as it was, by a checkpoint that needn't be a file."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Any] = {}

    def save_checkpoint(self, checkpoint: Any, path: Any, storage_options: Any = None) -> None:
        self.kept[str(path)] = copy.deepcopy(checkpoint)

    def load_checkpoint(self, path: Any, *args: Any, **kwargs: Any) -> Any:
        return copy.deepcopy(self.kept[str(path)])

    def remove_checkpoint(self, path: Any) -> None:
        self.kept.pop(str(path), None)


def _in_memory(package: str) -> Any:
    base = importlib.import_module(f"{package}.plugins").CheckpointIO
    return type("InMemory", (_InMemory, base), {})()

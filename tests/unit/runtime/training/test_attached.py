"""Loggers, profiler and plugins as a rank gets them: of the model's own Lightning package, with files where they are copied."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import lightning.pytorch
import pytest
import pytorch_lightning as pl
from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger
from pytorch_lightning.plugins import HalfPrecision, TorchCheckpointIO
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.profilers import AdvancedProfiler, SimpleProfiler

from airflow_provider_sparkddp.runtime.barrier.rank_info import RankInfo
from airflow_provider_sparkddp.runtime.training.attached import Attached
from airflow_provider_sparkddp.runtime.training.lightning_names import of_package
from airflow_provider_sparkddp.runtime.training.trainer import Seams, build_trainer
from airflow_provider_sparkddp.spec.compat import check_trainer
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support import other_model
from tests.support.refusals import refused
from tests.support.tiny_model import Line

HERE = __name__
ALONE = RankInfo(0, 1, 0, 1, 0, "127.0.0.1", "127.0.0.1", 29500, (), 1, "lo")
URI = "file:///shared/logs"


def own(path: str, **kwargs: Any) -> dict[str, Any]:
    return {"$import": path, "kwargs": kwargs}


def attached(folder: Path, rank: int = 0, package: str = "pytorch_lightning", **trainer: Any) -> Attached:
    return Attached.of(package, check_trainer(trainer), rank, folder, URI)


def test_each_logger_writes_below_its_own_label(tmp_path: Path) -> None:
    wanted = ["csv", own("pytorch_lightning.loggers:CSVLogger", name="more"), own(f"{HERE}:Quiet", level=3)]
    made = attached(tmp_path, logger=wanted).loggers
    assert list(made) == ["csv", "csv-2", "Quiet"]
    assert isinstance(made["csv"], CSVLogger)
    assert made["csv"].save_dir == str(tmp_path / "logs" / "csv")
    assert made["csv-2"].root_dir == str(tmp_path / "logs" / "csv-2" / "more")
    assert made["Quiet"].level == 3


def test_the_default_logger_is_lightnings(tmp_path: Path) -> None:
    (made,) = attached(tmp_path, logger=True).loggers.values()
    assert type(made) is type(pl.Trainer(logger=True, default_root_dir=str(tmp_path), accelerator="cpu").logger)


def test_without_tensorboard_the_default_is_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert list(attached(tmp_path, logger=True).loggers) == ["csv"]


@pytest.mark.parametrize("wanted", [None, False])
def test_no_logger_is_the_default(wanted: Any, tmp_path: Path) -> None:
    assert attached(tmp_path, logger=wanted).loggers == {}
    assert attached(tmp_path, logger=wanted).told() == {"loggers": {}, "logs_lost": None}


def test_what_other_ranks_would_write_is_not_copied(tmp_path: Path) -> None:
    made = attached(tmp_path, rank=1, logger="csv", profiler="simple")
    assert not Path(made.loggers["csv"].save_dir).is_relative_to(made.mirror.folder)
    assert made.profiler.dirpath == str(made.mirror.folder / "profiler" / "rank-00001")


@pytest.mark.parametrize("written", ["pytorch_lightning", "lightning.pytorch"])
@pytest.mark.parametrize("package", ["pytorch_lightning", "lightning.pytorch"])
def test_loggers_and_profilers_are_of_the_models_package(package: str, written: str, tmp_path: Path) -> None:
    home = {"pytorch_lightning": pl, "lightning.pytorch": lightning.pytorch}[package]
    logger, profiler = own(f"{written}.loggers:CSVLogger"), own(f"{written}.profilers:SimpleProfiler")
    made = attached(tmp_path, package=package, logger=logger, profiler=profiler)
    assert type(made.loggers["csv"]) is home.loggers.CSVLogger
    assert type(made.profiler) is home.profilers.SimpleProfiler


def test_names_of_the_other_package_are_translated_wherever_they_stand() -> None:
    nested = [
        own("lightning.pytorch.callbacks:X", inner={"$import": "lightning.fabric.plugins:Y"}, n=1),
        "lightning.pytorch",
    ]
    assert of_package("pytorch_lightning", nested) == [
        own("pytorch_lightning.callbacks:X", inner={"$import": "lightning_fabric.plugins:Y"}, n=1),
        "lightning.pytorch",
    ]
    assert of_package("lightning.pytorch", own("pytorch_lightning_more:X")) == own("pytorch_lightning_more:X")


@pytest.mark.parametrize(("name", "kind"), [("simple", SimpleProfiler), ("advanced", AdvancedProfiler)])
def test_a_profiler_writes_a_file(name: str, kind: type, tmp_path: Path) -> None:
    made = attached(tmp_path, profiler=name).profiler
    assert type(made) is kind
    assert (made.dirpath, made.filename) == (str(tmp_path / "logs" / "profiler" / "rank-00000"), "report")


@pytest.mark.parametrize(
    ("trainer", "code", "words"),
    [
        ({"logger": own("nowhere:Logger")}, "SDDP-401", "trainer['logger']='nowhere:Logger'"),
        ({"callbacks": [own("nowhere:Callback")]}, "SDDP-401", "trainer['callbacks']='nowhere:Callback'"),
        ({"profiler": own("nowhere:Profiler")}, "SDDP-401", "No module named 'nowhere'"),
        ({"logger": own("collections:OrderedDict")}, "SDDP-409", "gives a OrderedDict"),
        ({"profiler": own("collections:OrderedDict")}, "SDDP-409", "gives a OrderedDict"),
        ({"logger": own(f"{HERE}:Lacking")}, "SDDP-311", "needs a package that"),
    ],
    ids=str,
)
def test_what_a_rank_cannot_have_is_refused(trainer: dict[str, Any], code: str, words: str, tmp_path: Path) -> None:
    with refused(code, words):
        attached(tmp_path, **trainer)


@pytest.mark.parametrize(("name", "package"), [("tensorboard", "tensorboard"), ("mlflow", "mlflow")])
def test_a_missing_package_is_named_with_its_extra(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a rank sets it, and puts its environment back
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed here")
    with refused("SDDP-311", package, f"pip install 'airflow-provider-sparkddp[{name}]'"):
        attached(tmp_path, logger=name)


def test_plugins_reach_the_trainer_beside_our_environment(tmp_path: Path) -> None:
    arguments = check_trainer({"plugins": [own("lightning.pytorch.plugins:TorchCheckpointIO")]})
    trainer = build_trainer(arguments, Seams.of(Line(), arguments, ALONE, 32), ALONE, [], str(tmp_path))
    assert type(trainer.strategy.checkpoint_io) is TorchCheckpointIO
    assert trainer.world_size == 1


def test_a_number_format_may_be_a_plugin(tmp_path: Path) -> None:
    arguments = check_trainer({"plugins": own("pytorch_lightning.plugins:HalfPrecision", precision="bf16-true")})
    chosen = Seams.of(Line(), arguments, ALONE, 32)
    trainer = build_trainer(arguments, chosen, ALONE, [], str(tmp_path))
    assert type(trainer.strategy.precision_plugin) is HalfPrecision
    assert chosen.told()["precision"] == "pytorch_lightning.plugins:HalfPrecision"


@pytest.mark.parametrize(
    ("trainer", "code", "words"),
    [
        (
            {"precision": "32", "plugins": own("pytorch_lightning.plugins:HalfPrecision")},
            "SDDP-103",
            "the number format is set already",
        ),
        ({"plugins": own(f"{HERE}:Environment")}, "SDDP-103", "comes from Spark"),
        ({"plugins": own("collections:OrderedDict")}, "SDDP-409", "Allowed are CheckpointIO, LayerSync, Precision"),
    ],
    ids=str,
)
def test_plugins_that_are_refused(trainer: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(SparkDDPError, match=re.escape(words)) as caught:
        Seams.of(Line(), check_trainer(trainer), ALONE, 32)
    assert caught.value.code == code


def test_callbacks_of_the_other_package_are_those_of_the_models(tmp_path: Path) -> None:
    early = own("pytorch_lightning.callbacks:EarlyStopping", monitor="val_mae")
    chosen = Seams.of(other_model.Line(), {}, ALONE, 32)
    trainer = build_trainer(check_trainer({"callbacks": early}), chosen, ALONE, [], str(tmp_path))
    assert [type(callback) for callback in trainer.early_stopping_callbacks] == [
        lightning.pytorch.callbacks.EarlyStopping
    ]


def test_tensorboard_is_built_by_its_short_name(tmp_path: Path) -> None:
    assert isinstance(attached(tmp_path, logger="tensorboard").loggers["tensorboard"], TensorBoardLogger)


class Quiet(Logger):
    """Takes no folder."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.level = level

    name = version = "quiet"

    def log_metrics(self, *args: Any, **kwargs: Any) -> None:
        pass

    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        pass


class Lacking(Quiet):
    def __init__(self) -> None:
        raise ModuleNotFoundError("No module named 'its_service'")


class Environment(LightningEnvironment):
    pass

"""SparkDDPTrain's job on an embedded Spark: exact rows, equal steps, exact errors, a model that loads."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.data.dataset import read_share
from airflow_provider_sparkddp.runtime.data.shards import deal
from airflow_provider_sparkddp.runtime.jobs import export, partition, train, validate
from airflow_provider_sparkddp.runtime.jobs.cluster import require_slots
from airflow_provider_sparkddp.runtime.models import load_model
from airflow_provider_sparkddp.runtime.models.predict import inputs
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import TRAIN, VALIDATION, Manifest
from airflow_provider_sparkddp.storage import leases
from tests.support import jobs, partitions

MODELS = "tests.support.tiny_model"


@pytest.fixture(scope="module")
def manifest(local_spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """2,000 rows of y = 2 a - b + 1 for two ranks, a tenth held out."""
    sql = "SELECT a, b, 2 * a - b + 1 AS y, id FROM (SELECT id, rand(1) AS a, rand(2) AS b FROM range(0, 2000, 1, 3))"
    job = jobs.job("partition", tmp_path_factory.mktemp("line"), source={"sql": sql}, num_nodes=2, validation=0.1)
    return str(partition.run(local_spark, job, jobs.wanted).values["manifest"])


def trained(spark: Any, folder: Path, manifest: str, **settings: Any) -> dict[str, Any]:
    given = {"model": f"{MODELS}:Line", "features": ["a", "b"], "target": "y", **settings}
    return train.run(spark, jobs.job("train", folder, partitions=manifest, **given), jobs.wanted).values


def refused(spark: Any, folder: Path, manifest: str, **settings: Any) -> SparkDDPError:
    with pytest.raises(SparkDDPError) as caught:
        trained(spark, folder, manifest, **settings)
    assert not list(folder.rglob("model.json"))
    return caught.value


def test_the_line_from_partitions_to_a_verdict(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    values = trained(local_spark, tmp_path, manifest, alias="line", trainer={"max_epochs": 8})
    assert (values["world_size"], values["epochs"], values["alias"]) == (2, 8, "line")
    assert values["global_batch_size"] == 64
    assert values["losses"][-1] < 0.1 * values["losses"][0]
    assert values["metrics"]["val_mae"] < 0.2
    destination = f"file://{tmp_path}/models/line"
    trusted = [MODELS]
    exported = jobs.job(
        "export",
        tmp_path,
        model=values["model"],
        destination=destination,
        formats=["safetensors"],
        trusted_modules=trusted,
    )
    assert export.run(None, exported, jobs.wanted).values["alias"] == "line"
    gates = {
        "mae": {"max": 0.2},
        "r2": {"min": 0.9},
        "rmse": {"max_ratio": 0.5, "baseline": "a", "offset": "train_mean"},
    }
    job = jobs.job("validate", tmp_path, model=destination, data=manifest, metrics=gates, trusted_modules=trusted)
    verdict = validate.run(None, job, jobs.wanted).values
    assert verdict["verdict"] == "passed"
    assert all(check["passed"] for check in verdict["checks"])
    model = load_model(destination, trusted_modules=trusted)
    predicted = model.predict(pa.table({"b": [0.0, 1.0], "a": [1.0, 0.0]}))
    assert predicted.column_names == ["line"]
    assert predicted.column("line").to_pylist() == pytest.approx([3.0, 0.0], abs=0.6)


def raw_rows(seed: int, rows: int) -> dict[str, Any]:
    """y = a number for each city + first - second of pair + the standardised size; sizes are beyond float32's integers."""
    chance = np.random.default_rng(seed)
    places, pair, steps = chance.integers(0, 3, rows), chance.normal(size=(rows, 2)), chance.integers(-500, 501, rows)
    y = places + pair[:, 0] - pair[:, 1] + steps / 250
    return {
        "city": [("", "Aar ü", "b.c")[place] for place in places],
        "pair": pair.tolist(),
        "size": (2**40 + steps).tolist(),
        "y": y.tolist(),
        "guess": [1.0] * rows,
    }


def test_raw_columns_from_the_manifest_to_predictions(local_spark: Any, tmp_path: Path) -> None:
    train_rows, test_rows = [raw_rows(1, 700), raw_rows(2, 500)], raw_rows(4, 90)
    unseen = {**raw_rows(3, 60), "city": [None, "elsewhere"] * 30}
    uri = partitions.write(
        tmp_path / "run",
        train_rows,
        [unseen],
        row_group_size=64,
        test=[test_rows],
        encode={"city": "index", "size": "standardize"},
    )
    features = ["pair", "size", "city"]
    given = {"features": features, "model_kwargs": {"num_features": 4}, "trainer": {"max_epochs": 12}, "num_nodes": 2}
    values = trained(local_spark, tmp_path, uri, alias="raw", **given)
    assert values["world_size"] == 2
    destination = f"file://{tmp_path}/models/raw"
    paths = {"model": values["model"], "destination": destination}
    job = jobs.job("export", tmp_path, formats=["safetensors"], trusted_modules=[MODELS], **paths)
    export.run(None, job, jobs.wanted)

    model = load_model(destination, trusted_modules=[MODELS])
    assert set(model.description.encoders) == {"size", "city"}
    assert model.description.encoders["city"]["values"] == ["", "Aar ü", "b.c"]
    sizes = np.array([size for rows in train_rows for size in rows["size"]])
    assert model.description.encoders["size"]["std"] == pytest.approx(sizes.std(), rel=1e-9)
    assert model.parity is not None
    held_out = inputs(pa.table(unseen), model.description.features, model.description.encoders)
    assert model.parity["inputs"].tolist() == held_out[:30].tolist(), "rank 0 validates the first half, encoded alike"
    assert set(held_out[:, 3].tolist()) == {0.0}, "null and unseen cities have the unknown's index"
    predicted = model.predict(pa.table(test_rows).select(["city", "size", "pair"])).column("raw").to_numpy()
    assert abs(predicted - np.array(test_rows["y"])).mean() < 0.2

    gates = {"mae": {"max": 0.2}, "rmse": {"max_ratio": 0.3, "baseline": "guess", "offset": "train_mean"}}
    job = jobs.job("validate", tmp_path, model=destination, data=uri, metrics=gates, trusted_modules=[MODELS])
    verdict = validate.run(None, job, jobs.wanted).values
    assert (verdict["verdict"], verdict["split"], verdict["rows"]) == ("passed", "test", 90)
    assert verdict["metrics"]["mae"]["value"] == pytest.approx(
        abs(predicted - np.array(test_rows["y"])).mean(), rel=1e-5
    )


def test_the_partitions_are_leased_while_they_are_trained_on(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    seen: list[str] = []

    def still_wanted() -> None:
        seen.extend(leases.readers(manifest, time.time()))

    given = {"model": f"{MODELS}:Line", "features": ["a", "b"], "target": "y"}
    train.run(local_spark, jobs.job("train", tmp_path, partitions=manifest, **given), still_wanted)
    assert set(seen) == {"test.train"}
    assert leases.readers(manifest, time.time()) == []


def test_a_failed_gate_says_which_and_by_how_much(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    values = trained(local_spark, tmp_path, manifest)
    job = jobs.job(
        "validate",
        tmp_path,
        model=values["model"],
        data=manifest,
        metrics={"mae": {"max": 0.0001}},
        trusted_modules=[MODELS],
    )
    with pytest.raises(SparkDDPError) as caught:
        validate.run(None, job, jobs.wanted)
    assert caught.value.code == "SDDP-505"
    assert "mae <= 0.0001" in caught.value.message
    assert not caught.value.retry


def rows_seen(folder: Path, epoch: int, ranks: int) -> list[list[list[float]]]:
    """The batches of each rank."""
    return [torch.load(folder / f"rank-{rank}-epoch-{epoch}.pt", weights_only=True) for rank in range(ranks)]


def test_a_metric_logged_over_uneven_ranks_is_that_of_all_rows(local_spark: Any, tmp_path: Path) -> None:
    # 7 validation rows over 2 ranks: Lightning alone averages the rows per rank to a whole number.
    sql = "SELECT double(id) AS a, double(id % 5) AS y, id >= 40 AS held_out FROM range(47)"
    job = jobs.job("partition", tmp_path, source={"sql": sql}, num_nodes=2, validation={"column": "held_out"})
    uri = str(partition.run(local_spark, job, jobs.wanted).values["manifest"])
    values = trained(local_spark, tmp_path, uri, features=["a"], model_kwargs={"num_features": 1})
    model = load_model(values["model"], trusted_modules=[MODELS])
    plan = Manifest.from_text(storage.read_text(uri), uri)
    held_out = read_share(plan, uri, deal(plan.files, VALIDATION, 1)[0], ["a", "y"])
    predicted = model.predict(held_out).column("model").to_numpy()
    assert held_out.num_rows == 7
    assert values["metrics"]["val_mae"] == pytest.approx(
        abs(predicted - held_out.column("y").to_numpy()).mean(), rel=1e-6
    )


@pytest.mark.parametrize("num_nodes", [2, 3])
def test_every_row_is_used_once_an_epoch_in_equal_steps_also_for_another_world_size(
    num_nodes: int, local_spark: Any, manifest: str, tmp_path: Path
) -> None:
    # A stray file in the folder of the partitions changes nothing.
    stray = Path(manifest.removeprefix("file://")).parent / "data" / "part-00000-stray.parquet"
    pq.write_table(pa.table({"a": [9.0], "b": [9.0], "y": [9.0], "id": [99_999]}), stray)
    try:
        trained(
            local_spark,
            tmp_path,
            manifest,
            model=f"{MODELS}:RowRecorder",
            model_kwargs={"folder": str(tmp_path)},
            features=["id"],
            num_nodes=num_nodes,
            batch_size=100,
            trainer={"max_epochs": 2},
        )
    finally:
        stray.unlink()
    plan = Manifest.from_text(storage.read_text(manifest), manifest)
    expected = sorted(_ids(plan, manifest))
    for epoch in range(2):
        ranks = rows_seen(tmp_path, epoch, num_nodes)
        assert len({len(batches) for batches in ranks}) == 1
        assert all(batch for batches in ranks for batch in batches)
        assert sorted(row for batches in ranks for batch in batches for row in batch) == expected
    assert rows_seen(tmp_path, 0, num_nodes) != rows_seen(tmp_path, 1, num_nodes), "the epochs have the same order"


def _ids(plan: Manifest, uri: str) -> list[float]:
    folder = Path(uri.removeprefix("file://")).parent
    files = [folder / f.name for f in plan.files if f.split == TRAIN]
    return [float(i) for file in files for i in pq.ParquetFile(file).read(columns=["id"]).column(0).to_pylist()]


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_modules_of_both_lightning_packages_train(
    package: str, local_spark: Any, manifest: str, tmp_path: Path
) -> None:
    model = {"lightning.pytorch": "tests.support.other_model:Line", "pytorch_lightning": f"{MODELS}:make_line"}[package]
    watched = {"early_stopping": "val_mae", "best_weights": "val_mae", "on_nan": "skip"}
    values = trained(local_spark, tmp_path, manifest, model=model, **watched)
    assert (values["epochs"], values["skipped_steps"], values["best"]["epoch"]) == (1, 0, 0)
    assert values["metrics"] == {"val_mae": values["best"]["value"]}


def test_manual_optimisation_trains(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    values = trained(local_spark, tmp_path, manifest, model=f"{MODELS}:Manual", trainer={"max_epochs": 8})
    assert values["losses"] == [None] * 8, "the step returned no loss"
    assert values["metrics"]["val_mae"] < 0.3


def test_the_same_seed_gives_the_same_weights(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    first, second = (trained(local_spark, tmp_path, manifest) for _ in range(2))
    weights = [load_model(v["model"], trusted_modules=[MODELS]).module.layer.weight for v in (first, second)]
    assert torch.equal(weights[0], weights[1])
    assert first["losses"] == second["losses"]


def test_double_precision_keeps_doubles(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    values = trained(local_spark, tmp_path, manifest, trainer={"max_epochs": 1, "precision": "64-true"})
    assert load_model(values["model"], trusted_modules=[MODELS]).module.layer.weight.dtype == torch.float64


def test_callbacks_are_written_as_imports(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    stop = {
        "$import": "pytorch_lightning.callbacks:EarlyStopping",
        "kwargs": {"monitor": "val_mae", "stopping_threshold": 100.0},
    }
    assert trained(local_spark, tmp_path, manifest, trainer={"max_epochs": 50, "callbacks": [stop]})["epochs"] == 1


def test_the_summary_says_whose_the_weights_are(local_spark: Any, manifest: str, tmp_path: Path) -> None:
    given = {"model": f"{MODELS}:Line", "features": ["a", "b"], "target": "y", "best_weights": "val_mae"}
    outcome = train.run(local_spark, jobs.job("train", tmp_path, partitions=manifest, **given), jobs.wanted)
    value = outcome.values["best"]["value"]
    assert f"weights and metrics are those of the best val_mae, {value:.6g}, at epoch 1, step 29" in outcome.summary


class TestRefused:
    @pytest.mark.parametrize("argument", ["early_stopping", "best_weights"])
    def test_watching_a_validation_that_is_not_there(self, argument: str, local_spark: Any, tmp_path: Path) -> None:
        uri = partitions.write(tmp_path / "run", [{"a": [1.0, 2.0], "b": [1.0, 2.0], "y": [1.0, 2.0]}])
        error = refused(local_spark, tmp_path, uri, **{argument: "val_mae"})
        assert (error.code, "no rows for validation" in error.message) == ("SDDP-101", True), error

    def test_a_column_that_is_not_there(self, local_spark: Any, manifest: str, tmp_path: Path) -> None:
        error = refused(local_spark, tmp_path, manifest, features=["a", "c"])
        assert error.code == "SDDP-204"
        assert "they hold: a, b, y, id" in error.message

    @pytest.mark.parametrize(
        ("target", "code", "words"),
        [
            ("size", "SDDP-213", "target='size' is encoded by 'standardize'"),
            ("city", "SDDP-213", "target='city' is encoded by 'index'"),
            ("pair", "SDDP-205", "target column 'pair' is an array of 2 numbers"),
        ],
    )
    def test_a_target_that_is_no_raw_number(
        self, target: str, code: str, words: str, local_spark: Any, tmp_path: Path
    ) -> None:
        rows = {"size": [1.0, 2.0], "city": ["a", "b"], "pair": [[1.0, 2.0], [3.0, 4.0]], "y": [1.0, 2.0]}
        encode = {"city": "index", "size": "standardize"}
        uri = partitions.write(tmp_path / "run", [rows], encode=encode)
        error = refused(local_spark, tmp_path, uri, features=["y"], target=target, num_nodes=99)
        assert (error.code, words in error.message) == (code, True), error

    def test_a_model_that_cannot_be_imported(self, local_spark: Any, manifest: str, tmp_path: Path) -> None:
        error = refused(local_spark, tmp_path, manifest, model="nowhere.at_all:Model")
        assert error.code == "SDDP-401"
        assert "No module named 'nowhere'" in error.message

    def test_a_model_that_is_no_lightning_module(self, local_spark: Any, manifest: str, tmp_path: Path) -> None:
        error = refused(local_spark, tmp_path, manifest, model=f"{MODELS}:NotAModule")
        assert error.code == "SDDP-402"
        assert "NotAModule" in error.message

    def test_a_constructor_that_refuses(self, local_spark: Any, manifest: str, tmp_path: Path) -> None:
        error = refused(local_spark, tmp_path, manifest, model_kwargs={"width": 3})
        assert error.code == "SDDP-403"
        assert "unexpected keyword argument 'width'" in error.message

    def test_a_loss_that_is_no_number(self, local_spark: Any, manifest: str, tmp_path: Path) -> None:
        error = refused(local_spark, tmp_path, manifest, model=f"{MODELS}:Nan")
        assert error.code == "SDDP-406"
        assert "the loss is nan" in error.message

    def test_shapes_that_broadcast(self, local_spark: Any, manifest: str, tmp_path: Path) -> None:
        error = refused(local_spark, tmp_path, manifest, model=f"{MODELS}:Column")
        assert error.code == "SDDP-407"

    def test_a_rank_that_raises_has_its_own_traceback(self, local_spark: Any, manifest: str, tmp_path: Path) -> None:
        error = refused(local_spark, tmp_path, manifest, model=f"{MODELS}:Raises")
        assert error.code == "SDDP-404"
        assert "rank 1 on" in error.message
        assert "in training_step" in error.details["traceback"]
        assert 'RuntimeError("a fault in the user\'s own step")' in error.details["traceback"]

    def test_a_gpu_where_spark_has_none(self, local_spark: Any, manifest: str, tmp_path: Path) -> None:
        error = refused(local_spark, tmp_path, manifest, trainer={"accelerator": "cuda", "max_epochs": 1})
        assert error.code == "SDDP-307"

    def test_an_embedded_spark_asked_for_gpus_does_not_wait_for_ever(
        self, monkeypatch: pytest.MonkeyPatch, local_spark: Any
    ) -> None:
        conf = local_spark.sparkContext.getConf().set("spark.task.resource.gpu.amount", "1")
        monkeypatch.setattr(local_spark.sparkContext, "getConf", lambda: conf)
        with pytest.raises(SparkDDPError, match="a local master assigns no GPUs") as caught:
            require_slots(local_spark, 1, None)
        assert caught.value.code == "SDDP-307"

    def test_more_ranks_than_slots(self, local_spark: Any, manifest: str, tmp_path: Path) -> None:
        error = refused(local_spark, tmp_path, manifest, num_nodes=5)
        assert error.code == "SDDP-303"
        assert "5 ranks need 5 Spark slots at once; local[4] offers 4" in error.message

    def test_a_manifest_that_was_changed(self, local_spark: Any, manifest: str, tmp_path: Path) -> None:
        text = json.loads(storage.read_text(manifest))
        text["body"]["seed"] = 5
        (tmp_path / "manifest.json").write_text(json.dumps(text))
        assert refused(local_spark, tmp_path, f"file://{tmp_path}/manifest.json").code == "SDDP-208"

    def test_a_manifest_that_is_missing(self, local_spark: Any, tmp_path: Path) -> None:
        assert refused(local_spark, tmp_path, f"file://{tmp_path}/manifest.json").code == "SDDP-208"

    @pytest.mark.parametrize("harm", ["changed", "missing"])
    def test_a_partition_file_that_was_harmed(self, harm: str, local_spark: Any, manifest: str, tmp_path: Path) -> None:
        plan = Manifest.from_text(storage.read_text(manifest), manifest)
        path = Path(manifest.removeprefix("file://")).parent / plan.files[0].name
        whole = path.read_bytes()
        try:
            path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1])) if harm == "changed" else path.unlink()
            error = refused(local_spark, tmp_path, manifest)
        finally:
            path.write_bytes(whole)
        assert error.code == "SDDP-209"
        assert plan.files[0].name in error.message

    @pytest.mark.parametrize(
        ("column", "code", "words"),
        [
            ("IF(id = 7, null, 1.0d)", "SDDP-206", "1 nulls"),
            ("IF(id < 3, double('NaN'), 1.0d)", "SDDP-206", "3 NaN"),
            ("IF(id = 9, double('-Infinity'), 1.0d)", "SDDP-206", "1 infinities"),
            ("cast(id AS string)", "SDDP-205", "type string"),
            ("16777200 + id", "SDDP-207", "16777249"),
        ],
    )
    def test_features_that_cannot_be_trained_on(
        self, column: str, code: str, words: str, local_spark: Any, tmp_path: Path
    ) -> None:
        sql = f"SELECT {column} AS f, 1.0d AS y FROM range(50)"
        job = jobs.job("partition", tmp_path, source={"sql": sql})
        uri = str(partition.run(local_spark, job, jobs.wanted).values["manifest"])
        error = refused(local_spark, tmp_path, uri, features=["f"])
        assert (error.code, "'f'" in error.message) == (code, True)
        assert words in error.message

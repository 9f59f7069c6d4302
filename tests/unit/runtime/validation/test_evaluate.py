"""The verdict on an exported model: figures that numpy confirms, and each check that fails by its name."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from airflow_provider_sparkddp.runtime.models import LoadedModel, bundle, load_model
from airflow_provider_sparkddp.runtime.models.formats import safetensors
from airflow_provider_sparkddp.runtime.validation.evaluate import Verdict, evaluate, parity
from airflow_provider_sparkddp.spec.manifests import VALIDATION, Manifest
from tests.support import partitions, stored
from tests.support.refusals import refused

X = torch.tensor([[1.0, 2.0], [-3.0, 0.5], [0.0, 0.0]])
rng = np.random.default_rng(7)
TRAIN = [{name: rng.normal(size=rows).tolist() for name in ("a", "b", "y", "guess")} for rows in (7, 5)]
HELD_OUT = [{name: rng.normal(size=rows).tolist() for name in ("y", "guess", "b", "a")} for rows in (4, 6)]


def over(tables: Any, name: str) -> Any:
    return np.concatenate([np.asarray(table[name]) for table in tables])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The columns of the held-out files lie in another order than those of the training files."""
    return partitions.write(tmp_path_factory.mktemp("data") / "run", TRAIN, HELD_OUT)


def model_in(folder: Path, model: str = "Line", *, sample: Any = X, **named: Any) -> LoadedModel:
    stored.store(folder, model, sample=sample, **named)
    return load_model(folder, [stored.ZOO])


def judge(model: LoadedModel, data: str, gates: Any = None, alias: str | None = None) -> Verdict:
    manifest = Manifest.from_text(Path(data.removeprefix("file://")).read_text(), data)
    return evaluate(model, manifest, data, VALIDATION, gates or {}, alias)


def failed(verdict: Verdict) -> list[str]:
    assert verdict.passed == all(check.passed for check in verdict.checks)
    return [check.name for check in verdict.checks if not check.passed]


def test_a_sound_model_passes_every_check(tmp_path: Path, data: str) -> None:
    verdict = judge(model_in(tmp_path), data, {"mae": {"max": 1000}})
    assert [check.name for check in verdict.checks] == ["alias", "shape", "finite", "parity", "mae <= 1000"]
    assert verdict.passed
    assert verdict.rows == 10


def test_metrics_are_those_of_all_held_out_rows_and_no_others(tmp_path: Path, data: str) -> None:
    model = model_in(tmp_path)
    names = ("mae", "mse", "rmse", "median_ae", "r2")
    verdict = judge(model, data, {name: {"min": -1e9} for name in names})
    weight, bias = (p.detach().numpy().astype(np.float64) for p in model.module.parameters())
    inputs = np.stack([over(HELD_OUT, "a"), over(HELD_OUT, "b")], axis=1)
    target = over(HELD_OUT, "y")
    error = inputs @ weight[0] + bias[0] - target
    expected = {
        "mae": np.abs(error).mean(),
        "mse": (error**2).mean(),
        "rmse": (error**2).mean() ** 0.5,
        "median_ae": np.median(np.abs(error)),
        "r2": 1 - (error**2).sum() / ((target - target.mean()) ** 2).sum(),
    }
    assert {name: verdict.metrics[name]["value"] for name in names} == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("offset", ["train_median", "train_mean", 2.5, None])
def test_a_baseline_may_learn_its_offset_from_the_training_rows_alone(tmp_path: Path, data: str, offset: Any) -> None:
    gate = {"max_ratio": 1e9, "baseline": "guess"} | ({} if offset is None else {"offset": offset})
    figures = judge(model_in(tmp_path), data, {"mae": gate}).metrics["mae"]
    difference = over(TRAIN, "y") - over(TRAIN, "guess")
    shift = {"train_median": np.median(difference), "train_mean": difference.mean(), 2.5: 2.5, None: 0.0}[offset]
    expected = np.abs(over(HELD_OUT, "guess") + shift - over(HELD_OUT, "y")).mean()
    assert figures["offset"] == pytest.approx(shift)
    assert figures["baseline"] == pytest.approx(expected)


@pytest.mark.parametrize(("factor", "names"), [(1.001, []), (0.999, ["mae <= {ratio:g} x the baseline's"])])
def test_the_ratio_decides_between_just_better_and_just_worse(
    tmp_path: Path, data: str, factor: float, names: list[str]
) -> None:
    model = model_in(tmp_path)
    gate = {"max_ratio": 1e9, "baseline": "guess", "offset": "train_median"}
    figures = judge(model, data, {"mae": gate}).metrics["mae"]
    ratio = factor * figures["value"] / figures["baseline"]
    verdict = judge(model, data, {"mae": {**gate, "max_ratio": ratio}})
    assert failed(verdict) == [name.format(ratio=ratio) for name in names]


def test_another_alias_than_asked_for_fails_by_name(tmp_path: Path, data: str) -> None:
    verdict = judge(model_in(tmp_path), data, alias="delay")
    assert failed(verdict) == ["alias"]
    assert verdict.checks[0].detail == "'line', asked for 'delay'"


def test_predictions_that_are_no_numbers_fail_by_name(tmp_path: Path, data: str) -> None:
    verdict = judge(model_in(tmp_path, "Odd", kwargs={"kind": "nan"}), data, {"mae": {"max": 1e9}, "r2": {"min": -1e9}})
    assert failed(verdict) == ["finite", "parity", "mae <= 1e+09", "r2 >= -1e+09"]
    assert "10 NaN or infinite predictions" in [check.detail for check in verdict.checks]


def test_fewer_predictions_than_rows_fail_by_name(tmp_path: Path, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_in(tmp_path)
    whole = LoadedModel.predict
    monkeypatch.setattr(LoadedModel, "predict", lambda self, rows: whole(self, rows).slice(1))
    verdict = judge(model, data)
    assert failed(verdict) == ["shape"]
    assert "9 predictions for 10 rows" in [check.detail for check in verdict.checks]


def test_several_outputs_a_row_pass_without_metrics_and_fail_with_them(tmp_path: Path, data: str) -> None:
    model = model_in(tmp_path, "Wide", kwargs={"outputs": 3})
    assert failed(judge(model, data)) == []
    verdict = judge(model, data, {"mae": {"max": 1e9}})
    assert failed(verdict) == ["metrics"]
    assert verdict.checks[-1].detail == "predictions have 3 outputs a row; metrics need one"


def test_each_failing_gate_is_a_check_of_its_own(tmp_path: Path, data: str) -> None:
    verdict = judge(model_in(tmp_path), data, {"mae": {"max": 0, "min": 1e9}, "r2": {"min": 1}, "mse": {"max": 1e9}})
    assert failed(verdict) == ["mae <= 0", "mae >= 1e+09", "r2 >= 1"]


@pytest.mark.parametrize("change", [1.01, 1.00001, -1.0])
def test_weights_that_changed_after_training_fail_parity(tmp_path: Path, data: str, change: float) -> None:
    model = model_in(tmp_path)
    with torch.no_grad():
        model.module.layer.weight *= change
    found = parity(model)
    assert found.passed == (change == 1.00001)  # within what another processor may do
    assert "over 3 rows (tolerance 0.0001 relative + 1e-05)" in found.detail
    assert failed(judge(model, data)) == ([] if found.passed else ["parity"])


def test_weights_swapped_on_the_storage_fail_parity_though_the_file_is_sound(tmp_path: Path, data: str) -> None:
    model = model_in(tmp_path / "line")
    other = stored.store(tmp_path / "other", seed=1)
    safetensors.save(other.state_dict(), tmp_path / "weights")
    files = {bundle.WEIGHTS: tmp_path / "weights", bundle.PARITY: tmp_path / "parity"}
    safetensors.save_tensors(model.parity or {}, files[bundle.PARITY])
    bundle.publish((tmp_path / "line").as_uri(), model.description, files)
    assert failed(judge(load_model(tmp_path / "line", [stored.ZOO]), data)) == ["parity"]


def test_a_model_with_dropout_and_batch_statistics_passes_parity(tmp_path: Path, data: str) -> None:
    def train(module: Any) -> None:
        module.train()
        for _ in range(5):
            module(torch.randn(16, 2))

    model = model_in(tmp_path, "Noisy", prepare=train)
    assert failed(judge(model, data)) == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_tolerance_follows_the_number_format(tmp_path: Path, data: str, dtype: torch.dtype) -> None:
    model = model_in(tmp_path, sample=X.to(dtype), prepare=lambda module: module.to(dtype))
    assert failed(judge(model, data)) == []
    with torch.no_grad():
        model.module.layer.weight *= 1.00001
    wide = dtype == torch.bfloat16
    assert parity(model).passed == wide
    assert ("tolerance 0.02 relative" if wide else "tolerance 1e-09 relative") in parity(model).detail


def test_a_model_without_a_stored_sample_fails_parity(tmp_path: Path, data: str) -> None:
    model = model_in(tmp_path, sample=None)
    assert failed(judge(model, data)) == ["parity"]
    assert "no stored predictions" in parity(model).detail


def test_predictions_of_another_shape_fail_parity(tmp_path: Path) -> None:
    model = model_in(tmp_path)
    assert model.parity is not None
    wide = replace(model, parity={**model.parity, "predictions": torch.zeros(3, 2)})
    assert not parity(wide).passed
    assert parity(wide).detail == "shape (3,), stored (3, 2)"


def test_nan_is_never_equal_to_a_stored_nan(tmp_path: Path) -> None:
    model = model_in(tmp_path, "Odd", kwargs={"kind": "nan"})
    assert model.parity is not None and math.isnan(model.parity["predictions"][0])
    assert not parity(model).passed


def test_no_checks_are_no_pass() -> None:
    assert not Verdict().passed


def test_a_changed_data_file_is_refused(tmp_path: Path) -> None:
    model = model_in(tmp_path / "line")
    data = partitions.write(tmp_path / "run", TRAIN, HELD_OUT)
    part = tmp_path / "run" / "data" / "part-2.parquet"
    part.write_bytes(part.read_bytes()[:-1] + b"\x00")
    with refused("SDDP-209", "part-2.parquet", "other bytes"):
        judge(model, data)
    part.unlink()
    with refused("SDDP-209", "part-2.parquet", "is missing"):
        judge(model, data)


def test_a_stray_file_beside_the_data_changes_nothing(tmp_path: Path, data: str) -> None:
    model = model_in(tmp_path / "line")
    mine = partitions.write(tmp_path / "run", TRAIN, HELD_OUT)
    first = judge(model, mine, {"mae": {"max": 1e9}}).metrics
    part = tmp_path / "run" / "data" / "part-2.parquet"
    (part.parent / "part-9.parquet").write_bytes(part.read_bytes())
    assert judge(model, mine, {"mae": {"max": 1e9}}).metrics == first

"""`load_model`: what was stored comes back, ready to predict."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from airflow_provider_sparkddp.runtime.models import bundle, load_model
from tests.support import stored, zoo
from tests.support.refusals import refused

ZOO = stored.ZOO
X = torch.tensor([[1.0, 2.0], [-3.0, 0.5], [0.0, 0.0]])


def weights(folder: Path) -> Path:
    return folder / bundle.describe(folder.as_uri()).files[bundle.WEIGHTS].name


@pytest.mark.parametrize("model", ["Line", "NewLine", "Wide", "Noisy", "Buffers", "make_line"])
def test_the_loaded_model_computes_what_the_stored_one_did(tmp_path: Path, model: str) -> None:
    trained = stored.store(tmp_path, model).eval()
    loaded = load_model(tmp_path, [ZOO])
    assert torch.equal(loaded.module(X), trained(X))


def test_facts_of_the_model_are_kept(tmp_path: Path) -> None:
    stored.store(tmp_path, alias="delay_mlp", features=("b", "a"))
    loaded = load_model(tmp_path, [ZOO])
    assert (loaded.alias, loaded.features, loaded.target) == ("delay_mlp", ("b", "a"), "y")
    assert loaded.description.model == f"{ZOO}:Line"
    assert loaded.parity is None


def test_the_stored_sample_comes_along(tmp_path: Path) -> None:
    trained = stored.store(tmp_path, sample=X)
    parity = load_model(tmp_path, [ZOO]).parity
    assert parity is not None
    assert torch.equal(parity["inputs"], X)
    assert torch.equal(parity["predictions"], trained(X))


def test_the_model_is_in_eval_mode_down_to_its_last_part(tmp_path: Path) -> None:
    stored.store(tmp_path, "Noisy")
    module = load_model(tmp_path, [ZOO]).module
    assert not any(part.training for part in module.modules())
    assert torch.equal(module(X), module(X))


def test_tied_weights_are_one_object_after_loading(tmp_path: Path) -> None:
    stored.store(tmp_path, "Words", {"tied": False}, prepare=zoo.Words.tie)
    module = load_model(tmp_path, [ZOO]).module
    assert module.output.weight is module.embedding.weight


def test_the_model_outlives_its_files(tmp_path: Path) -> None:
    trained = stored.store(tmp_path, sample=X)
    loaded = load_model(tmp_path, [ZOO])
    for path in tmp_path.iterdir():
        path.unlink()
    assert torch.equal(loaded.module(X), trained(X))
    assert loaded.parity is not None and torch.equal(loaded.parity["inputs"], X)


@pytest.mark.parametrize("form", ["path", "text", "uri"])
def test_a_folder_can_be_given_in_each_way(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "my models" / "line"
    stored.store(folder)
    path = {"path": folder, "text": str(folder), "uri": f"file://{folder}"}[form]
    assert load_model(path, [ZOO]).alias == "line"


def test_a_relative_path_means_this_computers_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored.store(tmp_path / "line")
    monkeypatch.chdir(tmp_path)
    assert load_model("line", [ZOO]).alias == "line"


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with refused("SDDP-501", "no whole model", str(tmp_path / "nothing")):
        load_model(tmp_path / "nothing")


def test_truncated_weights_are_refused(tmp_path: Path) -> None:
    stored.store(tmp_path)
    path = weights(tmp_path)
    path.write_bytes(path.read_bytes()[:-4])
    with refused("SDDP-501", path.name, "cut or replaced"):
        load_model(tmp_path, [ZOO])


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    stored.store(tmp_path / "line")
    stored.store(tmp_path / "other", seed=1)
    weights(tmp_path / "line").write_bytes(weights(tmp_path / "other").read_bytes())
    with refused("SDDP-501", "cut or replaced"):
        load_model(tmp_path / "line", [ZOO])


def test_a_model_without_weights_is_refused(tmp_path: Path) -> None:
    bundle.publish(tmp_path.as_uri(), stored.description(), {})
    with refused("SDDP-501", "without weights"):
        load_model(tmp_path, [ZOO])


def test_weights_that_do_not_fit_the_class_of_today_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.store(tmp_path)
    monkeypatch.setattr(zoo, "Line", zoo.Buffers)
    with refused("SDDP-403", "unexpected keyword argument"):
        load_model(tmp_path, [ZOO])
    monkeypatch.setattr(zoo, "Line", lambda **named: zoo.Buffers())
    monkeypatch.setattr(zoo.Line, "__module__", ZOO)
    with refused("SDDP-503", "the weights don't fit Buffers", "centre"):
        load_model(tmp_path, [ZOO])

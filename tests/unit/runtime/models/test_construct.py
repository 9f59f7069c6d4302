"""From an import path and plain arguments to a LightningModule, the same one on every later day."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from airflow_provider_sparkddp.runtime.models.construct import construct, lightning_package
from airflow_provider_sparkddp.runtime.models.load import load_model
from tests.support import stored, zoo
from tests.support.refusals import refused

ZOO = stored.ZOO


@pytest.mark.parametrize(
    ("name", "kind", "package"),
    [
        ("Line", zoo.Line, "pytorch_lightning"),
        ("NewLine", zoo.NewLine, "lightning.pytorch"),
        ("make_line", zoo.Line, "pytorch_lightning"),
    ],
    ids=["class of pytorch_lightning", "class of lightning.pytorch", "function"],
)
def test_classes_of_both_packages_and_functions_are_built(name: str, kind: type, package: str) -> None:
    module, recorded = construct(f"{ZOO}:{name}", {"num_features": 3})
    assert type(module) is kind
    assert module.layer.in_features == 3
    assert recorded["num_features"] == 3
    assert lightning_package(type(module)) == package


@pytest.mark.parametrize(
    ("name", "text"),
    [("NotLightning", "gives a NotLightning"), ("make_layer", "gives a Linear"), ("CONSTANT", "is a int")],
)
def test_what_is_no_lightning_module_is_refused(name: str, text: str) -> None:
    with refused("SDDP-402", f"{ZOO}:{name}", text):
        construct(f"{ZOO}:{name}", {})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("no_such_module:Net", "ModuleNotFoundError: No module named 'no_such_module'"),
        (f"{ZOO}:NoSuchNet", "AttributeError"),
        ("tests.support.no_such:Net", "No module named 'tests.support.no_such'"),
    ],
)
def test_what_cannot_be_imported_is_refused(path: str, text: str) -> None:
    with refused("SDDP-401", f"model='{path}'", text, "py_files"):
        construct(path, {})


def test_a_module_that_fails_while_it_is_imported_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fails_at_import.py").write_text("import a_package_that_is_not_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    with refused("SDDP-401", "No module named 'a_package_that_is_not_installed'"):
        construct("fails_at_import:Net", {})


@pytest.mark.parametrize(
    ("kwargs", "texts"),
    [
        ({"num_feature": 3}, ["unexpected keyword argument 'num_feature'", "num_features"]),
        ({"num_features": 4}, ["ValueError: at most 3 features"]),
    ],
    ids=["unknown", "refused by the constructor"],
)
def test_arguments_that_the_constructor_refuses_are_named(kwargs: dict[str, Any], texts: list[str]) -> None:
    with refused("SDDP-403", f"{ZOO}:Picky", str(kwargs), *texts):
        construct(f"{ZOO}:Picky", kwargs)


def test_a_missing_argument_is_named() -> None:
    with refused("SDDP-403", "missing a required argument: 'layer'", "Its arguments are: layer, activation, sizes"):
        construct(f"{ZOO}:Composed", {})


def test_texts_become_what_the_constructor_declares() -> None:
    texts = {
        "rate": "0.01",
        "steps": "3",
        "warm": "False",
        "decay": "1e-3",
        "untyped": "4",
        "words": "7",
        "anything": "8",
    }
    module, recorded = construct(f"{ZOO}:Typed", texts)
    assert module.given == (0.01, 3, False, 0.001, 4.0, "7", "8")
    assert [type(value) for value in module.given] == [float, int, bool, float, float, str, str]
    assert recorded == dict(zip(texts, module.given, strict=True))


@pytest.mark.parametrize("text", ["None", " None "])
def test_the_text_none_is_none_where_none_is_declared(text: str) -> None:
    module, _ = construct(f"{ZOO}:Typed", {"rate": 1.0, "decay": text, "words": text})
    assert module.given[3] is None
    assert module.given[5] == text


@pytest.mark.parametrize(
    ("kwargs", "name", "text"),
    [
        ({"rate": "fast"}, "rate", "a finite number"),
        ({"rate": "nan"}, "rate", "a finite number"),
        ({"rate": "None"}, "rate", "a finite number"),
        ({"rate": 1.0, "steps": "1.5"}, "steps", "a whole number"),
        ({"rate": 1.0, "warm": "maybe"}, "warm", "True or False"),
    ],
)
def test_a_text_that_is_no_number_is_refused_by_name(kwargs: dict[str, Any], name: str, text: str) -> None:
    with refused("SDDP-101", f"model_kwargs['{name}']", repr(kwargs[name]), text):
        construct(f"{ZOO}:Typed", kwargs)


def test_values_that_are_no_texts_stay_as_they_are() -> None:
    module, _ = construct(f"{ZOO}:Typed", {"rate": 1, "steps": 2.0, "decay": None, "anything": {"a": [1]}})
    assert module.given[:2] == (1, 2.0)
    assert type(module.given[1]) is float
    assert module.given[3] is None
    assert module.given[6] == {"a": [1]}


def test_the_defaults_of_the_day_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    _, recorded = construct(f"{ZOO}:Line", {"scale": 2.0})
    assert recorded == {"num_features": 2, "scale": 2.0, "shifted": False, "label": "line"}
    # Another day, another default: the recorded arguments still build the model of then.
    monkeypatch.setattr(zoo.Line.__init__, "__defaults__", (9, 9.0, True, "other"))
    module, again = construct(f"{ZOO}:Line", recorded)
    assert (module.layer.in_features, module.scale, module.shifted, module.label) == (2, 2.0, False, "line")
    assert again == recorded


def test_what_is_recorded_is_plain_data() -> None:
    kwargs = {"layer": {"$import": "torch.nn:Linear", "kwargs": {"in_features": 2, "out_features": 1}}}
    _, recorded = construct(f"{ZOO}:Composed", kwargs)
    assert json.loads(json.dumps(recorded)) == recorded == {**kwargs, "activation": None}


def test_objects_in_arguments_are_imported_and_built() -> None:
    kwargs = {
        "layer": {"$import": "torch.nn:Sequential", "kwargs": {}},
        "activation": {"$import": "torch.nn.functional:relu"},
    }
    module, _ = construct(f"{ZOO}:Composed", kwargs)
    assert isinstance(module.layer, nn.Sequential)
    assert module.activation is nn.functional.relu


def test_objects_deep_in_arguments_are_built() -> None:
    inner = {"$import": "torch.nn:Linear", "kwargs": {"in_features": 2, "out_features": 5}}
    module, _ = construct(f"{ZOO}:Typed", {"rate": 1.0, "anything": {"layers": [inner, {"next": inner}]}})
    built = module.given[6]["layers"]
    assert built[0].out_features == built[1]["next"].out_features == 5
    assert built[0] is not built[1]["next"]


def test_an_object_that_cannot_be_imported_is_named_with_its_place() -> None:
    with refused("SDDP-401", "model_kwargs['layer']='torch.nn:Linearr'"):
        construct(f"{ZOO}:Composed", {"layer": {"$import": "torch.nn:Linearr"}})


def test_a_module_that_never_saved_its_arguments_is_rebuilt_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = stored.store(tmp_path, "Line", {"scale": "2.5"})
    assert dict(trained.hparams) == {}
    monkeypatch.setattr(zoo.Line.__init__, "__defaults__", (9, 9.0, True, "other"))
    loaded = load_model(tmp_path, [ZOO]).module
    assert (loaded.scale, loaded.shifted, loaded.label) == (2.5, False, "line")
    x = torch.randn(5, 2)
    assert torch.equal(loaded(x), trained(x))


def test_a_module_from_a_function_is_rebuilt_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = stored.store(tmp_path, "make_line")
    monkeypatch.setattr(zoo.make_line, "__defaults__", (9, 9.0))
    loaded = load_model(tmp_path, [ZOO]).module
    x = torch.randn(5, 2)
    assert torch.equal(loaded(x), trained(x))

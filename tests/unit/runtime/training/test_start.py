"""A training starts from the tensors of a stored model or a checkpoint, and says what doesn't fit; no other code is run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning
import torch
from torch import nn

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.models.bundle import ColumnFacts
from airflow_provider_sparkddp.runtime.training import start
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import Manifest
from airflow_provider_sparkddp.storage.manifests import read_manifest
from tests.support import partitions, stored, zoo
from tests.support.refusals import refused
from tests.support.tiny_model import Line, Sharded

SETTINGS = {"features": ["a", "b"], "target": "y"}
ENCODE = {"a": "standardize"}


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    rows = {"a": [1.0, 2.0, 6.0], "b": [3.0, 5.0, 4.0], "y": [0.0, 1.0, 0.0]}
    return read_manifest(partitions.write(tmp_path_factory.mktemp("start"), [rows], encode=ENCODE))


@pytest.fixture
def begun(manifest: Manifest) -> Callable[..., dict[str, Any]]:
    """As driver and rank do it, one after the other."""

    def begin(module: Any, path: Path, *, strict: bool = True, dtype: Any = torch.float32) -> dict[str, Any]:
        found = start.identify({"path": path.as_uri(), "strict": strict}, SETTINGS, manifest)
        return start.begin(module, found, dtype)

    return begin


def same(one: nn.Module, other: nn.Module) -> bool:
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def checkpoint(path: Path, module: Any) -> Path:
    """One that Lightning's own Trainer writes."""
    trainer = pytorch_lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False)
    trainer.strategy.connect(module)
    trainer.save_checkpoint(path)
    return path


def test_nothing_to_start_from_leaves_the_module_alone(manifest: Manifest) -> None:
    module, twin = Line(), Line()
    twin.load_state_dict(module.state_dict())
    assert start.identify(None, SETTINGS, manifest) == {}
    assert start.begin(module, {}, torch.float32) == {}
    assert same(module, twin)
    assert start.summary({}) == []


def test_a_stored_model_gives_its_weights_and_its_name(tmp_path: Path, begun: Any) -> None:
    earlier, module = stored.store(tmp_path / "m", "Words", alias="champion"), zoo.Words()
    told = begun(module, tmp_path / "m")["init_from"]
    assert same(module, earlier)
    assert module.output.weight is module.embedding.weight
    assert (told["path"], told["alias"]) == ((tmp_path / "m").as_uri(), "champion")
    assert (told["loaded"], told["missing"], told["unexpected"], told["reshaped"]) == (2, [], [], [])
    assert "started from 'champion'" in start.summary(told)[0]


def test_the_sha256_is_the_one_that_the_export_told(tmp_path: Path, manifest: Manifest) -> None:
    stored.store(tmp_path / "m")
    found = start.identify({"path": (tmp_path / "m").as_uri(), "strict": True}, SETTINGS, manifest)
    # What bundle.publish returns for the same body, as the export's XCom has it.
    assert found["sha256"] == start.bundle.wire.checksum(
        start.bundle.wire.unpack("model", (tmp_path / "m" / "model.json").read_text(), "m")
    )


def test_the_class_that_the_stored_model_names_is_never_imported(tmp_path: Path, begun: Any) -> None:
    earlier = stored.store(tmp_path / "m")
    described = tmp_path / "m" / "model.json"
    body = start.bundle.wire.unpack("model", described.read_text(), "m") | {"model": "nowhere.at_all:Net"}
    described.write_text(start.bundle.wire.pack("model", body))
    module = zoo.Line()
    begun(module, tmp_path / "m")
    assert same(module, earlier)


def test_lightnings_own_checkpoint_gives_its_state_dict(tmp_path: Path, begun: Any) -> None:
    earlier, module = Line(), Line()
    path = checkpoint(tmp_path / "last.ckpt", earlier)
    told = begun(module, path)["init_from"]
    assert same(module, earlier)
    assert (told["alias"], told["sha256"]) == (None, storage.sha256(path.as_uri()))


@pytest.mark.parametrize("kept", [torch.float64, torch.float32], ids=str)
def test_a_training_in_float64_keeps_all_bits(tmp_path: Path, begun: Any, kept: Any) -> None:
    earlier = stored.store(
        tmp_path / "m", prepare=lambda module: nn.init.constant_(module.double().layer.weight, 1 / 3)
    )
    module = zoo.Line()
    begun(module, tmp_path / "m", dtype=kept)
    assert module.layer.weight.dtype == kept
    assert torch.equal(module.layer.weight, earlier.layer.weight.to(kept))
    assert not torch.equal(earlier.layer.weight, earlier.layer.weight.float().double()), "no bit would be lost"


class Taller(Line):
    """Line with a layer more, and its own layer for one feature more."""

    def __init__(self) -> None:
        super().__init__(num_features=3)
        self.head = nn.Linear(3, 3)


def test_keys_that_do_not_fit_are_all_named_in_one_error(tmp_path: Path, begun: Any) -> None:
    stored.store(tmp_path / "m", "Words")
    with refused(
        "SDDP-503",
        "don't fit Taller (0 do)",
        "4 missing: layer.weight, layer.bias, head.weight, head.bias",
        "2 unexpected: embedding.weight, output.weight",
    ):
        begun(Taller(), tmp_path / "m")
    stored.store(tmp_path / "line")
    with refused(
        "SDDP-503", "(1 do)", "2 missing: head.", "1 reshaped: layer.weight (1, 2) into (1, 3)", "'strict': False"
    ):
        begun(Taller(), tmp_path / "line")


def test_without_strict_what_fits_is_taken_and_the_rest_is_told(tmp_path: Path, begun: Any) -> None:
    earlier, module = stored.store(tmp_path / "m"), Taller()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    told = begun(module, tmp_path / "m", strict=False)["init_from"]
    assert torch.equal(module.layer.bias, earlier.layer.bias)
    after = module.state_dict()
    assert {name for name in before if not torch.equal(before[name], after[name])} == {"layer.bias"}
    assert (told["loaded"], told["missing"]) == (1, ["head.weight", "head.bias"])
    assert told["reshaped"] == ["layer.weight (1, 2) into (1, 3)"]
    lines = start.summary(told)
    assert "1 tensors" in lines[0]
    assert "init_from: not loaded, missing: head.weight, head.bias" in lines


def test_without_strict_nothing_that_fits_is_still_an_error(tmp_path: Path, begun: Any) -> None:
    stored.store(tmp_path / "m", "Words")
    with refused("SDDP-503", "(0 do)"):
        begun(Taller(), tmp_path / "m", strict=False)


def test_many_names_are_cut_and_counted() -> None:
    wide = nn.ModuleList([nn.Linear(1, 1) for _ in range(30)])
    told = start.load_into(wide, {"0.weight": torch.ones(1, 1)}, strict=False)
    assert (len(told["missing"]), told["missing"][-1]) == (start.MANY + 1, "and 39 more")
    with pytest.raises(SparkDDPError, match="59 missing: 0.bias, .*, …"):
        start.load_into(wide, {"0.weight": torch.ones(1, 1)}, strict=True)


def test_names_that_a_module_renames_by_itself_fit(tmp_path: Path) -> None:
    """torch's own way of reading what an earlier version wrote."""
    old = nn.utils.weight_norm(nn.Linear(2, 1)).state_dict()
    module = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))
    told = start.load_into(module, old, strict=True)
    assert told["loaded"] == 3
    assert torch.equal(module.bias, old["bias"])


class Late(Line):
    """Makes its layer in configure_model."""

    def __init__(self) -> None:
        super().__init__()
        del self.layer

    def configure_model(self) -> None:
        if not hasattr(self, "layer"):
            self.layer = nn.Linear(2, 1)


def test_layers_that_configure_model_makes_get_their_weights_when_they_are_there(tmp_path: Path, begun: Any) -> None:
    earlier, module = stored.store(tmp_path / "m"), Late()
    told = begun(module, tmp_path / "m")["init_from"]
    assert "loaded" not in told
    trainer = pytorch_lightning.Trainer(
        accelerator="cpu", max_epochs=1, limit_train_batches=0, logger=False, enable_checkpointing=False
    )
    rows = [(torch.zeros(1, 2), torch.zeros(1))]
    trainer.fit(module, rows)
    assert same(module, earlier)
    assert told["loaded"] == 2
    with torch.no_grad():
        module.layer.weight += 1
    trainer.fit(module, rows)
    assert not same(module, earlier), "a later stage doesn't begin anew"


def test_a_module_that_only_shards_in_configure_model_waits_too() -> None:
    assert start.has_configure_model(Sharded())
    assert not start.has_configure_model(Line())


def test_weights_on_the_meta_device_are_refused() -> None:
    with torch.device("meta"):
        module = nn.Linear(2, 1)
    with refused("SDDP-503", "meta device"):
        start.load_into(module, {"weight": torch.ones(1, 2), "bias": torch.ones(1)}, strict=True)


class Custom:
    """Something that only unpickling brings back."""


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"state_dict": {"w": torch.ones(1)}, "hyper_parameters": {"loss": Custom()}}, "Custom"),
        ({"epoch": 3}, "no state_dict"),
        ([1, 2], "no state_dict"),
        (b"PK\x03\x04 cut", "not whole"),
    ],
    ids=["objects", "no weights", "a list", "cut"],
)
def test_a_checkpoint_that_is_more_than_weights_or_less_is_refused(
    tmp_path: Path, begun: Any, content: Any, why: str
) -> None:
    path = tmp_path / "last.ckpt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    with refused("SDDP-506", str(path), why):
        begun(Line(), path)


@pytest.mark.parametrize("name", ["m", "last.ckpt"])
def test_what_is_not_there_is_told_by_the_driver(tmp_path: Path, begun: Any, name: str) -> None:
    with refused("SDDP-501", str(tmp_path / name), "does not exist"):
        begun(Line(), tmp_path / name)


def test_weights_that_were_changed_are_refused(tmp_path: Path, begun: Any) -> None:
    stored.store(tmp_path / "m")
    weights = next((tmp_path / "m").glob("weights-*"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with refused("SDDP-501", "cut or replaced"):
        begun(zoo.Line(), tmp_path / "m")


def test_a_model_that_is_replaced_meanwhile_is_no_start_for_some_ranks_only(tmp_path: Path, manifest: Manifest) -> None:
    stored.store(tmp_path / "m", seed=1)
    found = start.identify({"path": (tmp_path / "m").as_uri(), "strict": True}, SETTINGS, manifest)
    stored.store(tmp_path / "m", seed=2)
    with refused("SDDP-501", "was replaced while the training started"):
        start.begin(zoo.Line(), found, torch.float32)


@pytest.mark.parametrize(
    ("features", "changes", "words"),
    [
        (("b", "a"), {}, "its features were b, a; now they are a, b"),
        (("a", "b"), {"target": ColumnFacts("z", "double")}, "its target was 'z'; now it is 'y'"),
        (
            ("a", "b"),
            {"encoders": {"a": {"kind": "standardize", "mean": 0.0, "std": 1.0}}},
            "'a' was encoded otherwise",
        ),
    ],
    ids=["order", "target", "encoder"],
)
def test_inputs_that_mean_something_else_are_warned_of(
    tmp_path: Path, manifest: Manifest, capsys: Any, features: Any, changes: dict[str, Any], words: str
) -> None:
    same_encoders = {"encoders": dict(manifest.encoders)}
    facts = stored.description(
        features=tuple(ColumnFacts(name, "double") for name in features), **same_encoders | changes
    )
    start.bundle.publish((tmp_path / "m").as_uri(), facts, {})
    found = start.identify({"path": (tmp_path / "m").as_uri(), "strict": True}, SETTINGS, manifest)
    assert len(found["warnings"]) == 1
    assert words in found["warnings"][0]
    assert words in capsys.readouterr().out

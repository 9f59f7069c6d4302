"""Nothing of a stored model runs that nobody named: no untrusted import, no escape by an attribute, no pickle."""

from __future__ import annotations

import ast
import pickle  # noqa: TID251 - planted by these tests, to show that nobody opens it
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import airflow_provider_sparkddp
from airflow_provider_sparkddp.runtime.imports import import_object
from airflow_provider_sparkddp.runtime.models import bundle, load_model
from tests.support import stored
from tests.support.refusals import refused

ZOO = stored.ZOO


class Trap:
    """Leaves a mark on the disk when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def put(folder: Path, weights: Path | None = None, **changes: Any) -> None:
    """A stored model that says of itself what the changes say, with sound checksums."""
    if weights is None:
        stored.store(folder)
        weights = folder / bundle.describe(folder.as_uri()).files[bundle.WEIGHTS].name
    bundle.publish(folder.as_uri(), stored.description(**changes), {bundle.WEIGHTS: weights})


@pytest.fixture
def side_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module `leaves_a_mark` that touches this file when it is imported."""
    code, mark = tmp_path / "code", tmp_path / "mark"
    code.mkdir()
    (code / "leaves_a_mark.py").write_text(
        f"from pathlib import Path\nfrom {ZOO} import Line as Base\nPath({str(mark)!r}).touch()\n"
        "class Line(Base):\n    pass\ndef activation(x):\n    return x\n"
    )
    monkeypatch.syspath_prepend(code)
    monkeypatch.delitem(sys.modules, "leaves_a_mark", raising=False)
    return mark


def test_a_class_that_nobody_trusts_is_refused_before_its_module_is_imported(tmp_path: Path, side_effect: Path) -> None:
    put(tmp_path / "line", model="leaves_a_mark:Line")
    for trusted in ([], [ZOO], ["leaves_a"], ["leaves_a_mark.sub"]):
        with refused("SDDP-502", "'leaves_a_mark:Line'", "trusted_modules=['leaves_a_mark'"):
            load_model(tmp_path / "line", trusted)
    assert "leaves_a_mark" not in sys.modules
    assert not side_effect.exists()
    assert load_model(tmp_path / "line", ["leaves_a_mark"]).alias == "line"
    assert side_effect.exists(), "the trap would have shown it"
    sys.modules.pop("leaves_a_mark")


@pytest.mark.parametrize("deep", [False, True], ids=["an argument", "deep in an argument"])
def test_an_import_in_the_arguments_is_refused_before_anything_is_imported(
    tmp_path: Path, side_effect: Path, deep: bool
) -> None:
    named: Any = {"$import": "leaves_a_mark:activation"}
    kwargs = {"label": {"a": [1, {"$import": f"{ZOO}:Line", "kwargs": {"label": [named]}}]} if deep else named}
    put(tmp_path / "line", model_kwargs=kwargs)
    with refused("SDDP-502", "'leaves_a_mark:activation'"):
        load_model(tmp_path / "line", [ZOO])
    assert not side_effect.exists()
    assert load_model(tmp_path / "line", [ZOO, "leaves_a_mark"]).alias == "line"
    assert side_effect.exists(), "the trap would have shown it"
    sys.modules.pop("leaves_a_mark")


def test_not_even_a_trusted_module_is_imported_beside_an_untrusted_name(tmp_path: Path, side_effect: Path) -> None:
    put(tmp_path / "line", model="leaves_a_mark:Line", model_kwargs={"label": {"$import": "subprocess:run"}})
    with refused("SDDP-502", "'subprocess:run'"):
        load_model(tmp_path / "line", ["leaves_a_mark"])
    assert not side_effect.exists()


def test_modules_of_lightning_and_of_this_package_need_not_be_named(tmp_path: Path) -> None:
    for model in ("pytorch_lightning.demos.boring_classes:BoringModel", "lightning.pytorch:LightningModule"):
        put(tmp_path / "line", model=model)
        with pytest.raises(Exception, match=r"SDDP-503|SDDP-403"):  # trusted and built; the weights are of another
            load_model(tmp_path / "line")


@pytest.mark.parametrize("module", ["lightning_evil", "pytorch_lightningx.core", "torch.nn", "os", "builtins"])
def test_names_that_only_begin_like_a_trusted_one_are_refused(tmp_path: Path, module: str) -> None:
    put(tmp_path / "line", model=f"{module}:Net")
    with refused("SDDP-502", f"'{module}:Net'"):
        load_model(tmp_path / "line", [ZOO])


ESCAPES = [
    "pytorch_lightning.trainer.trainer:os.system",
    "lightning.pytorch.core.module:torch.load",
    "lightning.pytorch.core.module:torch.hub.load",
    "lightning.pytorch.core.module:torch.nn.Linear",
    "lightning.pytorch:LightningModule.load_from_checkpoint",
    "lightning.pytorch.core.saving:load_hparams_from_yaml",
    "lightning.pytorch:Trainer",
    f"{ZOO}:torch.load",
    f"{ZOO}:torch.hub.load",
    f"{ZOO}:pytorch_lightning.LightningModule.load_from_checkpoint",
    f"{ZOO}:Line.load_from_checkpoint",
    f"{ZOO}:Line.to_onnx",
    f"{ZOO}:Line.load_state_dict",
    f"{ZOO}:Line.__init__.__globals__",
    f"{ZOO}:Line.__subclasses__",
    f"{ZOO}:torch.os",
    f"{ZOO}:CONSTANT",
    "airflow_provider_sparkddp.storage:remove",
]


@pytest.mark.parametrize("path", ESCAPES)
def test_an_attribute_of_a_trusted_module_that_is_not_its_own_is_refused(tmp_path: Path, path: str) -> None:
    assert import_object(path, "escape") is not None, "the way out exists, so that closing it proves something"
    put(tmp_path / "line", model=path)
    with refused("SDDP-502", repr(path)):
        load_model(tmp_path / "line", [ZOO])
    put(tmp_path / "line", model_kwargs={"label": {"$import": path, "kwargs": {}}})
    with refused("SDDP-502", repr(path)):
        load_model(tmp_path / "line", [ZOO])


@pytest.mark.parametrize("path", ["os.system", "a:b:c", "../evil:Net", "", "a b:c", ":Net"])
def test_what_is_no_import_path_is_refused(tmp_path: Path, path: str) -> None:
    put(tmp_path / "line", model=path)
    with refused("SDDP-101", "is not an import path"):
        load_model(tmp_path / "line", [ZOO])


def test_a_checkpoint_is_never_unpickled_through_the_users_own_class(tmp_path: Path) -> None:
    mark, checkpoint = tmp_path / "mark", tmp_path / "checkpoint.ckpt"
    torch.save({"state_dict": {}, "trap": Trap(mark)}, checkpoint)
    kwargs = {"checkpoint_path": str(checkpoint), "weights_only": False}
    put(tmp_path / "line", model=f"{ZOO}:Line.load_from_checkpoint", model_kwargs=kwargs)
    with refused("SDDP-502", "load_from_checkpoint", "which belongs to pytorch_lightning"):
        load_model(tmp_path / "line", [ZOO])
    assert not mark.exists()


@pytest.mark.parametrize("writer", ["torch", "pickle"])
def test_a_pickle_in_place_of_the_weights_is_not_opened(tmp_path: Path, writer: str) -> None:
    mark, planted = tmp_path / "mark", tmp_path / "planted"
    state = {"layer.weight": Trap(mark)}
    if writer == "torch":
        torch.save(state, planted)
    else:
        planted.write_bytes(pickle.dumps(state))
    put(tmp_path / "line", weights=planted)
    with refused("SDDP-501", "is not a whole safetensors file"):
        load_model(tmp_path / "line", [ZOO])
    assert not mark.exists()


def test_a_pickle_in_place_of_the_sample_is_not_opened(tmp_path: Path) -> None:
    mark, planted = tmp_path / "mark", tmp_path / "planted"
    torch.save({"inputs": Trap(mark)}, planted)
    stored.store(tmp_path / "line")
    weights = tmp_path / "line" / bundle.describe((tmp_path / "line").as_uri()).files[bundle.WEIGHTS].name
    files = {bundle.WEIGHTS: weights, bundle.PARITY: planted}
    bundle.publish((tmp_path / "line").as_uri(), stored.description(), files)
    with refused("SDDP-501", "is not a whole safetensors file"):
        load_model(tmp_path / "line", [ZOO])
    assert not mark.exists()


def test_the_traps_of_these_tests_are_armed(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Trap(tmp_path / "by pickle")))
    torch.save(Trap(tmp_path / "by torch"), tmp_path / "file")
    torch.load(tmp_path / "file", weights_only=False)
    assert (tmp_path / "by pickle").exists() and (tmp_path / "by torch").exists()


UNPICKLERS = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "jsonpickle"}
CALLS = {
    "torch.load",
    "torch.jit.load",
    "torch.package",
    "load_from_checkpoint",
    "read_pickle",
    "allow_pickle",
    "hub.load",
}
# A Lightning checkpoint to start from: torch's own reader of tensors and plain values, which refuses every other object.
WEIGHTS_ONLY = {"runtime/training/start.py": ["torch.load(local, map_location='cpu', weights_only=True)"]}
PACKAGE = Path(airflow_provider_sparkddp.__file__).parent
SOURCES = sorted(path for path in PACKAGE.rglob("*.py"))


def test_the_package_holds_nothing_that_unpickles() -> None:
    assert len(SOURCES) > 50
    found = {str(path.relative_to(PACKAGE)): _unpickles(path) for path in SOURCES}
    assert {name: what for name, what in found.items() if what} == WEIGHTS_ONLY


def _unpickles(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] in UNPICKLERS]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module] if (node.module or "").partition(".")[0] in UNPICKLERS else []
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            found += [ast.unparse(node) for name in CALLS if called == name or called.endswith(f".{name}")]
            found += [f"{called}({k.arg}=…)" for k in node.keywords if k.arg in CALLS]
    return found


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from cloudpickle import loads",
        "torch.load(path, weights_only=True)",
        "Net.load_from_checkpoint(path)",
        "numpy.load(path, allow_pickle=True)",
        "pandas.read_pickle(path)",
    ],
)
def test_the_search_finds_what_it_looks_for(tmp_path: Path, line: str) -> None:
    (tmp_path / "planted.py").write_text(line)
    assert _unpickles(tmp_path / "planted.py")

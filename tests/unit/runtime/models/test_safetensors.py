"""A model's state survives the file: ties, views, layouts, number formats and buffers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from airflow_provider_sparkddp.runtime.models.formats import safetensors
from tests.support import zoo
from tests.support.refusals import refused


def through(module: nn.Module, fresh: nn.Module, path: Path) -> dict[str, str]:
    """Save the module, load it into the fresh one; the ties."""
    tied = safetensors.save(module.state_dict(), path)
    safetensors.load(fresh, path, tied)
    return tied


def require_same_state(one: nn.Module, other: nn.Module) -> None:
    a, b = one.state_dict(), other.state_dict()
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype, name
        assert torch.equal(a[name], b[name]), name


def train_one(parameter: Any) -> None:
    with torch.no_grad():
        parameter += 1


@pytest.mark.parametrize("tied_by_its_constructor", [True, False])
def test_a_tied_weight_is_saved_once_and_tied_again(tmp_path: Path, tied_by_its_constructor: bool) -> None:
    trained, fresh = zoo.Words(tied=False), zoo.Words(tied=tied_by_its_constructor)
    trained.tie()
    path = tmp_path / "weights"
    assert through(trained, fresh, path) == {"output.weight": "embedding.weight"}
    assert set(load_file(path)) == {"embedding.weight"}
    assert fresh.output.weight is fresh.embedding.weight
    require_same_state(trained, fresh)
    train_one(fresh.embedding.weight)
    assert torch.equal(fresh.output.weight, trained.output.weight + 1)


def test_tied_weights_stay_tied_in_another_number_format(tmp_path: Path) -> None:
    trained, fresh = zoo.Words().to(torch.bfloat16), zoo.Words()
    through(trained, fresh, tmp_path / "weights")
    assert fresh.output.weight is fresh.embedding.weight
    require_same_state(trained, fresh)


def test_weights_that_are_equal_but_not_tied_stay_apart(tmp_path: Path) -> None:
    trained, fresh = zoo.Words(tied=False), zoo.Words(tied=False)
    with torch.no_grad():
        trained.output.weight.copy_(trained.embedding.weight)
    assert through(trained, fresh, tmp_path / "weights") == {}
    train_one(fresh.embedding.weight)
    require_same_state(nn.ModuleDict({"o": trained.output}), nn.ModuleDict({"o": fresh.output}))


def test_one_module_under_two_names_is_saved_once(tmp_path: Path) -> None:
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    trained, fresh = nn.ModuleDict({"a": layer, "b": layer}), nn.ModuleDict({"a": other, "b": other})
    tied = through(trained, fresh, tmp_path / "weights")
    assert tied == {"b.weight": "a.weight", "b.bias": "a.bias"}
    require_same_state(trained, fresh)


def test_views_of_one_block_are_saved_each_with_its_own_values(tmp_path: Path) -> None:
    trained, fresh = zoo.Views(), zoo.Views()
    trained.left[:] = torch.arange(4.0)
    trained.right[:] = torch.arange(10.0, 14.0)  # overlaps: the last two of left are the first two of right
    assert through(trained, fresh, tmp_path / "weights") == {}
    assert fresh.left.tolist() == [0.0, 1.0, 10.0, 11.0]
    assert fresh.right.tolist() == [10.0, 11.0, 12.0, 13.0]


def test_a_weight_that_is_not_contiguous_keeps_its_values(tmp_path: Path) -> None:
    trained, fresh = zoo.Views(), zoo.Views()
    with torch.no_grad():
        trained.weight.copy_(torch.arange(6.0).reshape(2, 3))
    assert not trained.weight.is_contiguous()
    through(trained, fresh, tmp_path / "weights")
    assert fresh.weight.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_a_slice_takes_no_more_room_than_its_own(tmp_path: Path) -> None:
    module, path = nn.Module(), tmp_path / "weights"
    module.register_buffer("small", torch.arange(1_000_000.0)[10:12])
    safetensors.save(module.state_dict(), path)
    assert path.stat().st_size < 1000
    assert load_file(path)["small"].tolist() == [10.0, 11.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_model_keeps_its_number_format(tmp_path: Path, dtype: torch.dtype) -> None:
    trained, fresh = zoo.Buffers().to(dtype), zoo.Buffers()
    through(trained, fresh, tmp_path / "weights")
    require_same_state(trained, fresh)
    assert fresh.layer.weight.dtype == dtype
    assert fresh.spread.dtype == dtype, "what isn't in the state goes along"
    assert fresh.seen.dtype == torch.int64


def test_a_model_that_mixes_number_formats_keeps_its_mixture(tmp_path: Path) -> None:
    trained, fresh = zoo.Mixed(), zoo.Mixed()
    trained.layer.to(torch.bfloat16)
    through(trained, fresh, tmp_path / "weights")
    assert (fresh.layer.weight.dtype, fresh.centre.dtype) == (torch.bfloat16, torch.float32)
    require_same_state(trained, fresh)
    assert isinstance(fresh.layer.weight, nn.Parameter) and fresh.layer.weight.requires_grad


def test_buffers_are_kept(tmp_path: Path) -> None:
    trained, fresh = zoo.Buffers(), zoo.Buffers()
    trained.centre += 7
    trained.seen += 2**40
    through(trained, fresh, tmp_path / "weights")
    require_same_state(trained, fresh)
    assert fresh.seen.item() == 2**40
    assert "spread" not in load_file(tmp_path / "weights")


def test_batch_statistics_are_kept(tmp_path: Path) -> None:
    trained, fresh = zoo.Noisy(), zoo.Noisy()
    trained.train()
    for _ in range(3):
        trained(torch.randn(8, 2))
    through(trained, fresh, tmp_path / "weights")
    require_same_state(trained, fresh)
    assert fresh.layers[1].num_batches_tracked.item() == 3


def test_a_state_that_is_no_tensor_is_refused_by_name(tmp_path: Path) -> None:
    with refused("SDDP-503", "'_extra_state'", "is a dict, not a tensor"):
        safetensors.save(zoo.Remembers().state_dict(), tmp_path / "weights")
    assert not (tmp_path / "weights").exists()


@pytest.mark.parametrize(
    ("saved", "loaded", "text"),
    [
        (zoo.Line, lambda: zoo.Line(3), "size mismatch for layer.weight"),
        (zoo.Line, zoo.Buffers, 'Missing key(s) in state_dict: "centre"'),
        (zoo.Buffers, zoo.Line, "Unexpected key(s) in state_dict"),
    ],
    ids=["another shape", "one is missing", "one too many"],
)
def test_weights_of_another_model_are_refused(tmp_path: Path, saved: Any, loaded: Any, text: str) -> None:
    safetensors.save(saved().state_dict(), tmp_path / "weights")
    with refused("SDDP-503", text, "Load with the code that the model was trained with"):
        safetensors.load(loaded(), tmp_path / "weights", {})


@pytest.mark.parametrize("data", [b"", b"\x80\x04K\x01.", b"\xff" * 64], ids=["empty", "a pickle", "noise"])
def test_a_file_of_another_format_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "weights").write_bytes(data)
    with refused("SDDP-501", "weights is not a whole safetensors file"):
        safetensors.load(zoo.Line(), tmp_path / "weights", {})

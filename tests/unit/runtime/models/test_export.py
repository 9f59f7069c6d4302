"""From a training's model to an exported one: the same model, and only when it loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from airflow_provider_sparkddp.runtime.models import bundle, load_model
from airflow_provider_sparkddp.runtime.models.export import export
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support import stored, zoo
from tests.support.refusals import refused

ZOO = stored.ZOO
X = torch.tensor([[1.0, 2.0], [-3.0, 0.5]])


def wanted() -> None:
    """Nobody killed the task."""


def exported(tmp_path: Path, **named: Any) -> tuple[Any, dict[str, Any]]:
    module = stored.store(tmp_path / "trained", **named)
    source, destination = (tmp_path / name for name in ("trained", "exported"))
    return module, export(source.as_uri(), destination.as_uri(), [ZOO], wanted)


def test_the_exported_model_is_the_trained_one(tmp_path: Path) -> None:
    trained, receipt = exported(tmp_path, model="Wide", kwargs={"outputs": 2}, alias="delay", sample=X)
    loaded = load_model(tmp_path / "exported", [ZOO])
    assert torch.equal(loaded.module(X), trained(X))
    assert loaded.alias == receipt["alias"] == "delay"
    assert loaded.parity is not None and torch.equal(loaded.parity["predictions"], trained(X))
    before = bundle.describe((tmp_path / "trained").as_uri())
    assert loaded.description == before


def test_the_receipt_names_what_was_written(tmp_path: Path) -> None:
    _, receipt = exported(tmp_path, sample=X)
    text = json.loads((tmp_path / "exported" / "model.json").read_text())
    assert receipt["sha256"] == text["checksum"]
    files = [path for path in (tmp_path / "exported").iterdir() if path.name != "model.json"]
    assert receipt["bytes"] == sum(path.stat().st_size for path in files)
    assert len(files) == 2


def test_ties_and_number_formats_survive_two_journeys(tmp_path: Path) -> None:
    def prepare(module: zoo.Words) -> None:
        module.tie()
        module.bfloat16()

    trained, _ = exported(tmp_path, model="Words", kwargs={"tied": False}, prepare=prepare)
    module = load_model(tmp_path / "exported", [ZOO]).module
    assert module.output.weight is module.embedding.weight
    assert module.output.weight.dtype == torch.bfloat16
    assert torch.equal(module(X.abs()), trained(X.abs()))


def test_a_task_that_was_killed_exports_nothing(tmp_path: Path) -> None:
    stored.store(tmp_path / "trained", alias="new")
    stored.store(tmp_path / "exported", alias="old")

    def killed() -> None:
        raise SparkDDPError("SDDP-309", "the task was killed.", "Nothing.")

    with refused("SDDP-309"):
        export((tmp_path / "trained").as_uri(), (tmp_path / "exported").as_uri(), [ZOO], killed)
    assert load_model(tmp_path / "exported", [ZOO]).alias == "old"


@pytest.mark.parametrize(("trusted", "code"), [([], "SDDP-502"), ([ZOO], "SDDP-501")], ids=["untrusted", "damaged"])
def test_what_does_not_load_is_not_exported(tmp_path: Path, trusted: list[str], code: str) -> None:
    stored.store(tmp_path / "trained", alias="new")
    stored.store(tmp_path / "exported", alias="old")
    if trusted:
        weights = bundle.describe((tmp_path / "trained").as_uri()).files[bundle.WEIGHTS].name
        (tmp_path / "trained" / weights).write_bytes(b"")
    with refused(code):
        export((tmp_path / "trained").as_uri(), (tmp_path / "exported").as_uri(), trusted, wanted)
    assert load_model(tmp_path / "exported", [ZOO]).alias == "old"


def test_a_destination_that_takes_no_files_is_named(tmp_path: Path) -> None:
    stored.store(tmp_path / "trained")
    (tmp_path / "file").write_text("x")
    with refused("SDDP-301", str(tmp_path / "file" / "below")):
        export((tmp_path / "trained").as_uri(), (tmp_path / "file" / "below").as_uri(), [ZOO], wanted)

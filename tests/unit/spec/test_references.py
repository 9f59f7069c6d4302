"""What one task hands to the next: an output, its text form, or a path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_sparkddp.spec.jobs import CodeRef
from airflow_provider_sparkddp.spec.references import ModelRef, import_paths, manifest_uri, model_ref, named_modules
from tests.support.refusals import refused

MANIFEST = "file:///run/partition/manifest.json"
PARTITIONED = {"manifest": MANIFEST, "files": ["data/a.parquet"], "rows": {"train": [5]}}
CODE = {"uri": "file:///run/code/x.zip", "sha256": "0" * 64, "modules": ["my_models"]}
TRAINED = {"model": "file:///run/model", "alias": "a", "trusted_modules": ["my_models"], "code": [CODE]}


@pytest.mark.parametrize(
    "value",
    [PARTITIONED, str(PARTITIONED), json.dumps(PARTITIONED), MANIFEST, "file:///run/partition", "file:/run/partition/"],
    ids=["output", "rendered", "json", "path", "folder", "slash"],
)
def test_a_manifest_is_named_by_the_output_its_text_a_path_or_its_folder(value: Any) -> None:
    assert manifest_uri(value, "partitions") == MANIFEST


@pytest.mark.parametrize("value", [TRAINED, str(TRAINED), json.dumps(TRAINED)], ids=["output", "rendered", "json"])
def test_a_models_output_brings_its_code_and_the_modules_that_its_author_named(value: Any) -> None:
    code = (CodeRef(CODE["uri"], CODE["sha256"], ("my_models",)),)
    assert model_ref(value, "model") == ModelRef("file:///run/model", ("my_models",), code)


def test_a_models_path_brings_no_code_and_no_trust() -> None:
    assert model_ref("s3://b/models/a/", "model") == ModelRef("s3://b/models/a", (), ())


@pytest.mark.parametrize("value", [{}, {"manifest": ""}, {"manifest": None}, {"manifest": 3}, 3, [], ""], ids=str)
def test_anything_else_is_refused_saying_what_to_give(value: Any) -> None:
    with refused("SDDP-101", "partitions is ", "PartitionToParquetOperator's output"):
        manifest_uri(value, "partitions")
    with refused("SDDP-101", "model is ", "training or export task"):
        model_ref(value, "model")


def test_a_text_that_is_half_a_dict_is_refused() -> None:
    with refused("SDDP-101", "a dict"):
        manifest_uri("{'manifest': ", "partitions")


def test_a_path_that_is_not_absolute_is_refused() -> None:
    with refused("SDDP-107", "partitions='runs/manifest.json'"):
        manifest_uri("runs/manifest.json", "partitions")


def test_the_modules_that_an_author_named_are_those_of_the_model_and_of_every_import() -> None:
    kwargs = {
        "loss": {"$import": "losses.huber:Huber", "kwargs": {"act": {"$import": "my_models:Act"}}},
        "blocks": [1, {"$import": "blocks:Wide"}],
    }
    assert sorted(import_paths(kwargs)) == ["blocks:Wide", "losses.huber:Huber", "my_models:Act"]
    assert named_modules("my_models:Net", kwargs) == ["my_models", "losses.huber", "blocks"]
    assert named_modules("my_models:Net", None) == ["my_models"]

"""What a DAG's author named is found, or refused naming what was asked for and why it failed."""

from __future__ import annotations

import collections
from pathlib import Path

import pytest

from airflow_provider_sparkddp.runtime.imports import build, import_object
from tests.support.refusals import refused


def test_an_object_is_found_also_inside_of_a_class() -> None:
    assert import_object("collections:OrderedDict", "model") is collections.OrderedDict
    assert import_object("pathlib:Path.home", "source")() == Path.home()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("no_such_module:Net", "ModuleNotFoundError"),
        ("collections:NoSuchClass", "AttributeError"),
        ("broken_module_of_a_user:Net", "ZeroDivisionError: division by zero"),
    ],
)
def test_what_cannot_be_imported_is_refused_with_the_reason(
    path: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_module_of_a_user.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with refused("SDDP-401", f"model={path!r}", told, "py_files"):
        import_object(path, "model")


def test_objects_are_built_wherever_they_stand_in_plain_data() -> None:
    fraction = {"$import": "fractions:Fraction", "kwargs": {"numerator": 1, "denominator": 2}}
    built = build({"a": [fraction, 3], "b": {"c": fraction}, "d": None}, "model_kwargs")
    assert [built["a"][0] * 2, built["a"][1], built["b"]["c"] * 4, built["d"]] == [1, 3, 2, None]


def test_without_kwargs_it_is_the_thing_itself() -> None:
    assert build({"$import": "fractions:Fraction"}, "model_kwargs").__name__ == "Fraction"


def test_objects_are_built_inside_out() -> None:
    inner = {"$import": "fractions:Fraction", "kwargs": {"numerator": 3}}
    outer = {"$import": "fractions:Fraction", "kwargs": {"numerator": inner, "denominator": 2}}
    assert build(outer, "trainer") == 1.5

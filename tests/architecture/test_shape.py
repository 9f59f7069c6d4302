"""Sizes, names and the public surface: what makes the package readable, and what others build on."""

from __future__ import annotations

import ast
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import airflow_provider_sparkddp
from airflow_provider_sparkddp import operators
from airflow_provider_sparkddp.runtime import models, training
from tests.architecture.conftest import PACKAGE, REPOSITORY

LINES_OF_A_FILE, MEDIAN_OF_FILES = 500, 120
LINES_OF_A_FUNCTION, MEDIAN_OF_FUNCTIONS = 50, 10
HUBS = {"utils", "util", "common", "helpers", "core", "misc"}
# Homes of people and machines; and where packages are fetched from, which is each machine's own setting.
OF_A_MACHINE = re.compile(
    r"(?<![\w.])/(root|home/\w+|Users/\w+)/|files\.pythonhosted\.org|pypi\.org/simple|download\.pytorch\.org"
)


def python(tracked: list[Path]) -> list[Path]:
    return [path for path in tracked if path.suffix == ".py"]


def functions(path: Path) -> list[tuple[str, int]]:
    """(where, lines) of each function, from its def to its last line."""
    return [
        (
            f"{path.relative_to(REPOSITORY)}:{node.lineno} {node.name}",
            (node.end_lineno or node.lineno) - node.lineno + 1,
        )
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_is_too_long_to_read_at_one_sitting(tracked: list[Path]) -> None:
    assert {str(path): lines(path) for path in python(tracked) if lines(path) > LINES_OF_A_FILE} == {}


def test_no_function_is_longer_than_a_screen(tracked: list[Path]) -> None:
    found = [each for path in python(tracked) for each in functions(path)]
    assert len(found) > 500
    assert {where: size for where, size in found if size > LINES_OF_A_FUNCTION} == {}


def test_most_files_and_functions_of_the_package_are_short() -> None:
    files = list(PACKAGE.rglob("*.py"))
    assert statistics.median(map(lines, files)) <= MEDIAN_OF_FILES
    assert statistics.median(size for path in files for _, size in functions(path)) <= MEDIAN_OF_FUNCTIONS


def test_no_room_is_a_hub(tracked: list[Path]) -> None:
    parts = {part.removesuffix(".py") for path in tracked for part in path.relative_to(REPOSITORY).parts}
    assert not parts & HUBS


def test_every_module_says_what_it_is_for() -> None:
    silent = [p for p in PACKAGE.rglob("*.py") if not ast.get_docstring(ast.parse(p.read_text(encoding="utf-8")))]
    assert silent == []


def test_the_public_surface_is_this() -> None:
    assert operators.__all__ == [
        "ModelExportOperator",
        "ModelValidationOperator",
        "PartitionToParquetOperator",
        "SparkDDPTrainOperator",
    ]
    assert models.__all__ == ["LoadedModel", "load_model"]
    assert training.__all__ == ["spark_environment"]
    assert {name for name in vars(airflow_provider_sparkddp) if not name.startswith("_")} <= {
        path.stem for path in PACKAGE.iterdir()
    }


@pytest.mark.parametrize("name", operators.__all__)
def test_each_operator_can_be_had_and_tells_its_arguments(name: str) -> None:
    assert "Args:" in (getattr(operators, name).__doc__ or "")


@pytest.mark.parametrize("room", [models, training], ids=["models", "training"])
def test_what_needs_torch_is_loaded_only_when_somebody_asks(room: Any) -> None:
    code = f"import sys; import {room.__name__}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert all(callable(getattr(room, name)) for name in room.__all__)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = room.nothing_like_it


def test_the_package_itself_imports_nothing() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]


def places_of_this_machine() -> set[str]:
    """This checkout's folder, and where this machine's pip looks for packages."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    sources = re.findall(r"(?:index-url|find-links)='(.*)'$", listed.stdout, flags=re.MULTILINE)
    places = {place for value in sources for place in value.split()}
    # A checkout in a place that the images use too is no finding.
    checkout = set() if REPOSITORY.is_relative_to("/opt") else {f"{REPOSITORY}{os.sep}"}
    return {place for place in places | checkout if len(place) > 4}


def test_nothing_names_a_place_of_one_machine_or_where_it_fetches_packages(tracked: list[Path]) -> None:
    places, found = places_of_this_machine(), {}
    for path in tracked:
        text = path.read_bytes().decode("utf-8", errors="replace")
        hits = [match.group() for match in OF_A_MACHINE.finditer(text)] + [p for p in places if p in text]
        if hits and path != Path(__file__):
            found[str(path.relative_to(REPOSITORY))] = hits
    assert found == {}


@pytest.mark.parametrize("text", ["see /home/me/x", "file:///" + "root/a", "at https://" + "pypi" + ".org/simple/"])
def test_such_a_place_would_be_found(text: str) -> None:
    assert OF_A_MACHINE.search(text)


@pytest.mark.parametrize("text", ["https://host/home/me/x", "/homepage/a", "/rooted/a"])
def test_what_only_looks_like_one_is_not(text: str) -> None:
    assert not OF_A_MACHINE.search(text)

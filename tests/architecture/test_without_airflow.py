"""Guard three: every module of the cluster side is imported where Airflow can't be. Shown to fail on a planted import."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.conftest import PACKAGE, Copy

ROOMS = ("spec", "storage", "runtime")
# Arguments: the folder above the package, then the modules. Ends with status 1 at the first that needs Airflow.
IMPORT_ALL = f"""
import importlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "airflow":
            raise ImportError(f"{{name}} is blocked")

sys.meta_path.insert(0, Blocked())
root, *names = sys.argv[1:]
sys.path.insert(0, root)
for name in names:
    module = importlib.import_module(name)
    assert module.__file__.startswith(root), module.__file__
upward = [name for name in sys.modules if name.startswith(("{PACKAGE.name}.operators", "{PACKAGE.name}.hooks"))]
assert not upward, upward
print(len(names))
"""


def modules(package: Path) -> list[str]:
    """Every module of the cluster side, by name."""
    files = sorted(path for room in ROOMS for path in (package / room).rglob("*.py"))
    parts = [path.relative_to(package.parent).with_suffix("").parts for path in files]
    return [".".join(part for part in each if part != "__init__") for each in parts]


def imported(package: Path, names: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", IMPORT_ALL, str(package.parent), *names],
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_module_of_the_cluster_side_lives_without_airflow() -> None:
    names = modules(PACKAGE)
    assert f"{PACKAGE.name}.runtime.training.rank" in names
    done = imported(PACKAGE, names)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) == len(names) > 50


@pytest.mark.parametrize(
    ("file", "line", "told"),
    [
        ("runtime/imports.py", "import airflow", "airflow is blocked"),
        ("spec/planted.py", "from airflow.sdk import BaseOperator", "airflow is blocked"),
        ("storage/__init__.py", f"from {PACKAGE.name}.hooks import plan", f"{PACKAGE.name}.hooks"),
    ],
)
def test_a_planted_import_is_found(copy: Copy, file: str, line: str, told: str) -> None:
    copy.plant(file, line)
    package = copy.root / PACKAGE.name
    # The light rooms and the planted module will do: what torch costs, the test above has paid.
    names = [name for name in modules(package) if ".runtime." not in name or name.endswith(".runtime.imports")]
    done = imported(package, names)
    assert done.returncode == 1
    assert told in done.stderr


def foreign_imports(folder: Path) -> Iterator[tuple[str, str]]:
    """(file, module) of every import below the folder that is neither the standard library's nor the folder's own."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "."]
            for name in names:
                ours = name.startswith(f"{PACKAGE.name}.spec")
                if not ours and name.partition(".")[0] not in sys.stdlib_module_names:
                    yield path.name, name


def test_the_contract_needs_nothing_but_the_standard_library() -> None:
    assert list(foreign_imports(PACKAGE / "spec")) == []


@pytest.mark.parametrize("line", ["import yaml", "from attrs import define", "def late(): import numpy.linalg"])
def test_a_planted_package_in_the_contract_is_found(copy: Copy, line: str) -> None:
    copy.plant("spec/wire.py", line)
    assert [file for file, _ in foreign_imports(copy.root / PACKAGE.name / "spec")] == ["wire.py"]

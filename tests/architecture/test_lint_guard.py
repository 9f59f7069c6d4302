"""Guard one: ruff refuses heavy imports where a DAG is parsed, and pickle everywhere. Shown to fail on planted violations."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.architecture.conftest import Copy

HEAVY = ["torch", "pyspark", "pytorch_lightning", "lightning", "pandas", "pyarrow", "numpy", "safetensors"]
AIRFLOWS_ROOMS = ["operators", "hooks", "spec", "storage"]


def violations(copy: Copy) -> set[tuple[str, str]]:
    """(file, rule) of what ruff finds under the repository's own settings."""
    found = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=json", "."],
        cwd=copy.root,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        (each["filename"].rpartition("airflow_provider_sparkddp/")[2], each["code"])
        for each in json.loads(found.stdout)
    }


def test_the_package_as_it_is_passes(copy: Copy) -> None:
    assert violations(copy) == set()


def test_a_heavy_import_at_module_level_of_airflows_side_is_found(copy: Copy) -> None:
    for room in AIRFLOWS_ROOMS:
        for module in HEAVY:
            copy.plant(f"{room}/planted_{module}.py", f"import {module}\n\nprint({module})")
    planted = {(f"{room}/planted_{module}.py", "TID253") for room in AIRFLOWS_ROOMS for module in HEAVY}
    assert violations(copy) == planted


@pytest.mark.parametrize(
    "line", ["from torch import nn", "import torch.nn as nn", "from pyspark.sql import functions as nn"]
)
def test_it_is_found_however_it_is_written(copy: Copy, line: str) -> None:
    copy.plant("operators/planted.py", f"{line}\n\nprint(nn)")
    assert violations(copy) == {("operators/planted.py", "TID253")}


def test_inside_of_a_function_and_on_the_cluster_side_it_is_allowed(copy: Copy) -> None:
    copy.plant("hooks/planted.py", "def late() -> object:\n    import torch\n\n    return torch")
    copy.plant("runtime/planted.py", "import torch\n\nprint(torch)")
    assert violations(copy) == set()


@pytest.mark.parametrize("module", ["pickle", "cloudpickle"])
@pytest.mark.parametrize("room", ["operators", "runtime/models"])
def test_unpickling_is_found_on_both_sides_also_inside_of_a_function(copy: Copy, module: str, room: str) -> None:
    copy.plant(f"{room}/planted.py", f"def late() -> object:\n    import {module}\n\n    return {module}")
    assert (f"{room}/planted.py", "TID251") in violations(copy)

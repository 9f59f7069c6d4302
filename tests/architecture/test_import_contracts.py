"""Guard two: import-linter's contracts, kept as the package is, each shown to break on a planted import."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.architecture.conftest import PACKAGE, REPOSITORY, Copy

OURS = PACKAGE.name
CLUSTER = "The cluster side never imports Airflow or Airflow's side"
AIRFLOW = "Airflow's side never imports the cluster side"
STANDARD = "The contract is standard library only"
WAY_OF_AIRFLOW = "Imports run one way on Airflow's side"
WAY_OF_CLUSTER = "Imports run one way on the cluster side"
SEAMS = "The seams of training don't know one another"

PLANTED = [
    ("runtime/imports.py", "import airflow", CLUSTER),
    ("storage/__init__.py", "def late(): from airflow.sdk import BaseHook", CLUSTER),
    ("runtime/jobs/train.py", f"from {OURS}.hooks import plan", CLUSTER),
    ("hooks/plan.py", f"from {OURS}.runtime import imports", AIRFLOW),
    ("operators/train.py", "def late(): import torch", AIRFLOW),
    ("spec/jobs.py", "import fsspec", STANDARD),
    ("hooks/plan.py", f"from {OURS} import operators", WAY_OF_AIRFLOW),
    ("runtime/data/shards.py", f"from {OURS}.runtime.jobs import train", WAY_OF_CLUSTER),
    ("runtime/training/strategies/ddp.py", f"from {OURS}.runtime.training.accelerators import choose", SEAMS),
]


def contracts(root: Path) -> dict[str, str]:
    """Contract -> KEPT or BROKEN, of the package in that folder."""
    command = "import sys; from importlinter.cli import lint_imports_command as lint; sys.exit(lint())"
    done = subprocess.run(
        [sys.executable, "-c", command, "--no-cache"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = dict(re.findall(r"^(.+?) (KEPT|BROKEN)$", done.stdout, flags=re.MULTILINE))
    assert (done.returncode == 0) == (set(found.values()) == {"KEPT"}), done.stdout + done.stderr
    return found


def test_all_contracts_are_kept() -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    names = {contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]}
    assert contracts(REPOSITORY) == dict.fromkeys(names, "KEPT")
    assert {contract for *_, contract in PLANTED} == names, "each contract has a violation to show that it bites"


@pytest.mark.parametrize(("file", "line", "contract"), PLANTED, ids=[f"{file}: {line}" for file, line, _ in PLANTED])
def test_a_planted_import_breaks_its_contract(copy: Copy, file: str, line: str, contract: str) -> None:
    copy.plant(file, line)
    assert contracts(copy.root)[contract] == "BROKEN"

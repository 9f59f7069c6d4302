"""A copy of the package and of the repository's settings, in which a violation can be planted."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import airflow_provider_sparkddp

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = Path(airflow_provider_sparkddp.__file__).parent


class Copy:
    """The copy's root, beside the package and pyproject.toml as in the repository."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def plant(self, file: str, line: str) -> None:
        """Add a line to a file of the package, which need not exist yet."""
        with (self.root / PACKAGE.name / file).open("a", encoding="utf-8") as handle:
            handle.write(f"\n{line}\n")


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    root = tmp_path / "repository"
    shutil.copytree(PACKAGE, root / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", root)
    return Copy(root)


@pytest.fixture(scope="session")
def tracked() -> list[Path]:
    """The files that git knows, but for those that were just removed."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    return [path for name in listed.stdout.split("\0") if name and (path := REPOSITORY / name).is_file()]

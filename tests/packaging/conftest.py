"""One wheel, built once, and clean virtual environments that hold it and nothing of this checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CONSTRAINTS = REPOSITORY / "constraints.txt"
PREFIXES = ("AIRFLOW", "PYTHON", "SPARK", "VIRTUAL_ENV", "JAVA_TOOL_OPTIONS")


@dataclass(frozen=True)
class Environment:
    """A virtual environment with its own home; its processes see nothing of this one's settings."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, folder: Path) -> Environment:
        # Without a pip of its own: this environment's installs into it, which saves seconds.
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        return cls(folder, {"AIRFLOW_HOME": str(folder / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "True"})

    def install(self, *requirements: str) -> None:
        pip = [sys.executable, "-m", "pip", "--python", str(self.folder / "bin" / "python")]
        # What is really imported is compiled then; compiling everything takes a minute more.
        options = ["--quiet", "--no-compile", "--disable-pip-version-check", "-c", str(CONSTRAINTS)]
        self._succeed([*pip, "install", *options, *requirements])
        self._succeed([*pip, "check"])

    def run(self, program: str, *arguments: str, **variables: str) -> str:
        """The program's standard output; its failure is the test's."""
        return self._succeed([str(self.folder / "bin" / program), *arguments], **variables)

    def python(self, script: str, *arguments: str, **variables: str) -> str:
        return self.run("python", "-c", script, *arguments, **variables)

    def _succeed(self, command: Sequence[str], **variables: str) -> str:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIXES)}
        environment = {**inherited, **self.variables, **variables}
        # Run outside of the checkout: its packages must not be found beside the process.
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the checkout with the packages at hand."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(REPOSITORY)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@contextmanager
def holding(requirement: str, factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """A clean environment with the requirement, gone afterwards: with torch it is of more than a gigabyte."""
    environment = Environment.make(factory.mktemp("clean") / "venv")
    try:
        environment.install(requirement)
        yield environment
    finally:
        shutil.rmtree(environment.folder)


@pytest.fixture(scope="session")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """The wheel without extras."""
    with holding(str(wheel), tmp_path_factory) as environment:
        yield environment


@pytest.fixture(scope="session")
def cluster(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """`wheel[cluster]`: what the Spark driver and the executors need."""
    with holding(f"{wheel}[cluster]", tmp_path_factory) as environment:
        yield environment


@pytest.fixture(scope="session")
def airflow(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """`wheel[airflow]`: what Airflow's workers need."""
    with holding(f"{wheel}[airflow]", tmp_path_factory) as environment:
        yield environment

"""An Airflow of these tests' own: a home with a fresh database, a Spark connection to an embedded Spark."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.airflow)
            if not shutil.which("java"):
                item.add_marker(pytest.mark.skip(reason="Spark needs Java 17 or newer, and none is on PATH"))


@dataclass(frozen=True)
class Ran:
    """What came of a DAG run. `log` is what the user sees."""

    outcome: dict[str, Any]
    log: str

    def task(self, task_id: str, map_index: int = -1) -> str:
        return str(self.outcome["tasks"][f"{task_id}[{map_index}]"]).rpartition(".")[2].lower()

    def xcom(self, task_id: str, map_index: int = -1) -> Any:
        return self.outcome["xcoms"][f"{task_id}[{map_index}]"]

    def log_of(self, task_id: str) -> str:
        """The part of the log from where the task starts to where it ends."""
        start = self.log.index(f"starting task_id={task_id} ")
        return self.log[start : self.log.find("[DAG TEST] starting", start + 1)]


@dataclass(frozen=True)
class Airflow:
    home: Path
    storage: Path

    def environment(self, dags: Path) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW")}
        return {
            **inherited,
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__SPARKDDP__STORAGE_ROOT": self.storage.as_uri(),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    def test_dag(self, file: Path, dag_id: str, **conf: Any) -> Ran:
        """Run `dag.test()` to its end."""
        self.start_dag(file, dag_id, {}, **conf).wait()
        return self.ran(dag_id)

    def start_dag(self, file: Path, dag_id: str, variables: Mapping[str, str], **conf: Any) -> subprocess.Popen[bytes]:
        """The process of a `dag.test()` that has begun, with these environment variables besides."""
        out, log = self.home / f"{dag_id}.json", self.home / f"{dag_id}.log"
        command = [sys.executable, "-m", "tests.support.dag_runner", str(file), dag_id, str(out), json.dumps(conf)]
        environment = {**self.environment(file.parent), **variables}
        with log.open("w") as handle:
            return subprocess.Popen(command, cwd=self.home, env=environment, stdout=handle, stderr=handle)

    def ran(self, dag_id: str) -> Ran:
        """What came of a `dag.test()` that has ended."""
        out, log = self.home / f"{dag_id}.json", self.home / f"{dag_id}.log"
        assert out.exists(), log.read_text()[-5000:]
        return Ran(json.loads(out.read_text()), log.read_text())


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Airflow:
    made = Airflow(tmp_path_factory.mktemp("airflow"), tmp_path_factory.mktemp("storage"))
    binary = str(Path(sys.executable).parent / "airflow")
    subprocess.run([binary, "db", "migrate"], env=made.environment(made.home), capture_output=True, check=True)
    return made

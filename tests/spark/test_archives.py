"""A packed environment on a real cluster of two workers, given to the operator: the ranks run in it and in nothing else."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
import torch
from airflow.providers.common.compat.sdk import DAG, AirflowFailException

from airflow_provider_sparkddp.operators import SparkDDPTrainOperator
from tests.support import partitions, submit
from tests.support.spark_cluster import Cluster

# Each rank writes down which interpreter it is.
ONLY_HERE = """
import sys
from pathlib import Path
from tests.support.tiny_model import Line


class Net(Line):
    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder

    def on_train_start(self) -> None:
        Path(self.folder, f"rank-{self.global_rank}").write_text(sys.prefix)
"""


@pytest.fixture(scope="module")
def dags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a DAG file, with a packed environment beside it: this one's packages, and a module of its own."""
    folder = tmp_path_factory.mktemp("dags")
    environment = folder / "made"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = environment / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (packages / "only_here.py").write_text(ONLY_HERE)
    subprocess.run(["tar", "-czf", folder / "environment.tar.gz", "-C", environment, "."], check=True)
    return folder


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> str:
    a, b = torch.rand(2, 64, generator=torch.Generator().manual_seed(0)).tolist()
    rows = {"a": a, "b": b, "y": [2 * x - y + 1 for x, y in zip(a, b, strict=True)]}
    return partitions.write(tmp_path_factory.mktemp("data"), [rows, rows])


def execute(dags: Path, folder: Path, manifest: str, **arguments: Any) -> dict[str, Any]:
    """Run the training task of a DAG file in the folder."""
    dag = DAG("packed", schedule=None, start_date=pendulum.datetime(2026, 1, 1))
    dag.fileloc = str(dags / "packed.py")
    train = SparkDDPTrainOperator(
        task_id="train",
        dag=dag,
        conn_id=submit.CONN,
        run_dir=folder.as_uri(),
        partitions=manifest,
        model="only_here:Net",
        model_kwargs={"folder": str(folder)},
        features=["a", "b"],
        target="y",
        num_nodes=2,
        trainer={"max_epochs": 1},
        **arguments,
    )
    ti = SimpleNamespace(dag_id="packed", task_id="train", run_id="manual", map_index=-1, try_number=1)
    context = {"ti": ti, "dag": dag, "params": {}}
    train.render_template_fields(context)
    return train.execute(context)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_ranks_run_in_the_packed_environment(
    gpu_cluster: Cluster, dags: Path, manifest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in submit.connection(gpu_cluster.master).items():
        monkeypatch.setenv(key, value)
    conf = {name: value for name, value in gpu_cluster.conf().items() if name != "spark.pyspark.python"}
    values = execute(dags, tmp_path, manifest, conf=conf, archives="environment.tar.gz#environment")
    assert values["world_size"] == 2
    prefixes = {(tmp_path / f"rank-{rank}").read_text() for rank in range(2)}
    # Below the workers' own folders, where Spark unpacked it.
    assert all(Path(prefix).is_relative_to(gpu_cluster.logs) for prefix in prefixes), prefixes
    assert all(prefix.endswith("/environment") for prefix in prefixes)


def test_on_a_local_master_it_is_refused_before_spark_starts(
    dags: Path, manifest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in submit.connection("local[2]").items():
        monkeypatch.setenv(key, value)
    with pytest.raises(AirflowFailException, match="SDDP-113.*ranks run in the Airflow worker's own interpreter"):
        execute(dags, tmp_path, manifest, archives="environment.tar.gz#environment")
    assert not (tmp_path / "rank-0").exists()

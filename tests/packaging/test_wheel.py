"""What a user gets by `pip install`: complete, light without extras, the two sides apart, found by Airflow."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
import torch

from airflow_provider_sparkddp import __version__
from airflow_provider_sparkddp.runtime.models.export import export
from tests.support import stored

from .conftest import REPOSITORY, Environment

pytestmark = pytest.mark.packaging

ROWS = {"b": [2.0, 5.0, 0.25], "a": [1.0, -4.0, 0.0]}

USERS_MODEL = """
import pytorch_lightning
import torch

class Net(pytorch_lightning.LightningModule):
    def __init__(self, hidden: int = 2):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)
"""

IMPORTABLE = """
import importlib.util, json, sys
print(json.dumps([name for name in sys.argv[1:] if importlib.util.find_spec(name)]))
"""

PREDICT = """
import json, sys
from airflow_provider_sparkddp.runtime.models import load_model
model = load_model(sys.argv[1], trusted_modules=["users_model"])
result = model.predict(json.loads(sys.argv[2]))
foreign = sorted(name for name in sys.modules if name.partition(".")[0] in ("airflow", "pyspark"))
print(json.dumps({"alias": model.alias, "columns": result.to_pydict(), "foreign": foreign}))
"""

BASE = """
import importlib, json, pkgutil, sys
import airflow_provider_sparkddp.spec as spec
names = [f"{spec.__name__}.{module.name}" for module in pkgutil.iter_modules(spec.__path__)]
for name in names:
    importlib.import_module(name)
from airflow_provider_sparkddp import storage
storage.write_text(sys.argv[1], "written")
print(json.dumps([len(names), storage.read_text(sys.argv[1])]))
"""

PROVIDER = """
import importlib, importlib.metadata, json, pathlib, airflow, jsonschema
from airflow.providers_manager import ProvidersManager
(entry,) = [e for e in importlib.metadata.entry_points(group="apache_airflow_provider") if "sparkddp" in e.value]
info = entry.load()()
schema = pathlib.Path(airflow.__file__).parent / "provider_info.schema.json"
jsonschema.validate(info, json.loads(schema.read_text()))
for operators in info["operators"]:
    for module in operators["python-modules"]:
        importlib.import_module(module)
found = ProvidersManager().providers["airflow-provider-sparkddp"]
print("FOUND", json.dumps({"version": found.version, "name": found.data["package-name"]}))
"""


def test_the_wheel_holds_every_module_and_the_example_dags(wheel: Path) -> None:
    package = REPOSITORY / "airflow_provider_sparkddp"
    expected = {str(path.relative_to(REPOSITORY)) for path in package.rglob("*.py")}
    examples = REPOSITORY / "dags" / "examples"
    expected |= {f"airflow_provider_sparkddp/example_dags/{path.name}" for path in examples.glob("*.py")}
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert expected <= held
    assert {name.partition("/")[0] for name in held} == {"airflow_provider_sparkddp"}
    assert not [name for name in held if re.search(r"tests?/|__pycache__|\.pyc$", name)]
    assert wheel.name.startswith(f"airflow_provider_sparkddp-{__version__}-py3-none-any")


def test_without_extras_the_contract_needs_fsspec_alone(base: Environment, tmp_path: Path) -> None:
    modules, text = json.loads(base.python(BASE, (tmp_path / "file").as_uri()))
    assert modules >= 8 and text == "written"
    heavy = ("torch", "numpy", "pandas", "pyarrow", "pyspark", "pytorch_lightning", "safetensors", "airflow")
    assert json.loads(base.python(IMPORTABLE, *heavy, "fsspec")) == ["fsspec"]


def test_on_the_cluster_a_model_predicts_without_airflow(
    cluster: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, trained, exported = (tmp_path / name for name in ("code", "trained", "exported"))
    code.mkdir()
    (code / "users_model.py").write_text(USERS_MODEL)
    monkeypatch.syspath_prepend(code)
    module = stored.store(trained, "users_model:Net", {"hidden": "3"}, alias="delay_mlp")
    export(trained.as_uri(), exported.as_uri(), ["users_model"], lambda: None)
    assert json.loads(cluster.python(IMPORTABLE, "airflow", "torch", "pyspark")) == ["torch", "pyspark"]
    found = json.loads(cluster.python(PREDICT, str(exported), json.dumps(ROWS), PYTHONPATH=str(code)))
    expected = module(torch.tensor([ROWS["a"], ROWS["b"]]).T).tolist()
    assert found == {"alias": "delay_mlp", "columns": {"delay_mlp": pytest.approx(expected, rel=1e-5)}, "foreign": []}


@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17 or newer, and none is on PATH")
def test_on_the_cluster_barrier_code_of_ones_own_trains_without_airflow(cluster: Environment, tmp_path: Path) -> None:
    page = (REPOSITORY / "docs/how-to/own-barrier-code.md").read_text()
    script = tmp_path / "own.py"
    script.write_text(re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[0])
    told = cluster.run("python", str(script), PYSPARK_PYTHON=str(cluster.folder / "bin" / "python"))
    weights = re.findall(r"Row\(rank=(\d), weight=([\d.]+)\)", told)
    assert sorted(rank for rank, _ in weights) == ["0", "1"]
    assert len({weight for _, weight in weights}) == 1
    assert float(weights[0][1]) == pytest.approx(3, abs=0.3)


def test_airflow_lists_the_provider(airflow: Environment) -> None:
    listed = json.loads(airflow.run("airflow", "providers", "list", "--output", "json"))
    (ours,) = [provider for provider in listed if provider["package_name"] == "airflow-provider-sparkddp"]
    assert ours["version"] == __version__


def test_the_provider_info_is_valid_and_its_operators_import_without_torch(airflow: Environment) -> None:
    printed = airflow.python(PROVIDER)
    found = json.loads(printed.rpartition("FOUND ")[2])
    assert found == {"version": __version__, "name": "airflow-provider-sparkddp"}
    assert json.loads(airflow.python(IMPORTABLE, "torch", "pytorch_lightning", "airflow")) == ["airflow"]


def test_the_example_dag_appears_with_the_other_examples(airflow: Environment) -> None:
    airflow.run("airflow", "db", "migrate")
    airflow.run("airflow", "dags", "reserialize", "--bundle-name", "airflow-provider-sparkddp-example-dags")
    listed = _last_json(airflow.run("airflow", "dags", "list", "--output", "json"))
    (dag,) = [dag for dag in listed if dag["dag_id"] == "flight_delay"]
    assert Path(dag["fileloc"]).is_relative_to(airflow.folder)
    assert _last_json(airflow.run("airflow", "dags", "list-import-errors", "--output", "json")) == []


def _last_json(printed: str) -> list[dict[str, str]]:
    """The list that a command prints after its warnings."""
    found: list[dict[str, str]] = json.loads(printed.strip().splitlines()[-1])
    return found

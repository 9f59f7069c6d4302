"""The README holds the example DAG word for word, and names what a newcomer needs."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest

from tools.docs import EXAMPLE, OPERATORS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def test_the_dag_in_the_readme_is_the_example() -> None:
    block = README.partition(f"<!-- begin {EXAMPLE} -->\n")[2].partition(f"\n<!-- end {EXAMPLE} -->")[0]
    assert block == f"```python\n{(ROOT / EXAMPLE).read_text()}```"


def test_the_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", README))
    assert {"demo", "test", "check"} <= named <= targets


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_stands_in_the_table(operator: str) -> None:
    assert f"| `{operator}` |" in README


def test_what_is_needed_is_what_the_package_asks_for() -> None:
    assert "Python ≥ 3.11, Java ≥ 17 and make" in README
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text()


def test_the_versions_are_those_of_the_constraints() -> None:
    pinned = dict(re.findall(r"^([a-z-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    told = re.search(r"Tested with Airflow (\S+), Spark\s+(\S+), torch (\S+), Lightning (\S+) and", README)
    assert told is not None
    names = ("apache-airflow", "pyspark", "torch", "pytorch-lightning")
    assert list(told.groups()) == [pinned[name] for name in names]
    assert pinned["pyspark"] == pinned["pyspark-client"]


def test_the_storage_root_is_a_setting_of_the_provider() -> None:
    info = (ROOT / "airflow_provider_sparkddp/get_provider_info.py").read_text()
    assert "[sparkddp]\nstorage_root = " in README and '"storage_root"' in info


def test_the_snippet_on_loading_gives_every_feature_of_the_example() -> None:
    snippet = next(b for b in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "load_model(" in b)
    tree = ast.parse((ROOT / EXAMPLE).read_text())
    features = next(n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "FEATURES")
    assert all(f'"{name}": [' in snippet for name in ast.literal_eval(features))


def test_the_shell_blocks_are_whole_commands() -> None:
    for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL):
        for line in block.splitlines():
            shlex.split(line, comments=True)  # an open quote raises

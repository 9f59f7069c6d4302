"""The documentation agrees with the code, its links resolve, and its snippets are whole."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_sparkddp.spec import jobs, seams
from airflow_provider_sparkddp.spec.checks.models import METRICS as METRICS_ALLOWED
from airflow_provider_sparkddp.spec.checks.source import SOURCE_KEYS
from airflow_provider_sparkddp.spec.errors import CODES
from tools import combinations, docs
from tools.error_texts import TEXTS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
IDS = [str(page.relative_to(ROOT)) for page in PAGES]
each_page = pytest.mark.parametrize("page", PAGES, ids=IDS)


def prose(page: Path) -> str:
    """The page without its code blocks."""
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def code_blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings: lower case, no punctuation, a hyphen for each space."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", docs.pages())
def test_what_is_made_from_the_code_is_up_to_date(page: str) -> None:
    assert (ROOT / page).read_text() == docs.pages()[page], "run: python -m tools.docs"


def test_every_code_has_a_text_and_every_text_a_code() -> None:
    assert set(TEXTS) == set(CODES)
    assert all(text.meaning and text.cause and text.remedy for text in TEXTS.values())


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_heading_of_its_own(code: str) -> None:
    page = docs.errors_page()
    assert f"\n### {code}\n" in page and CODES[code].title in page


@each_page
def test_every_code_that_is_mentioned_exists(page: Path) -> None:
    assert set(re.findall(r"SDDP-\d+", page.read_text())) <= set(CODES)


@each_page
def test_the_links_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", prose(page)):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@each_page
def test_nothing_of_the_machine_that_it_was_written_on_is_told(page: Path) -> None:
    assert not re.findall(r"(?<![\w…])/(?:work|root|home)/\S*", page.read_text())


@each_page
def test_the_snippets_are_whole(page: Path) -> None:
    for block in code_blocks(page, "python"):
        ast.parse(block)
    for block in code_blocks(page, "json"):
        json.loads(block)
    for block in code_blocks(page, "bash"):
        subprocess.run(["bash", "-n"], input=block, text=True, check=True, timeout=10)


def _imports_of_ours(page: Path) -> Iterator[tuple[str, str]]:
    for block in code_blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("airflow_provider_sparkddp"):
                yield from ((str(node.module), alias.name) for alias in node.names)


@each_page
def test_what_the_snippets_import_is_offered_by_the_package(page: Path) -> None:
    for module, name in _imports_of_ours(page):
        path = ROOT / module.replace(".", "/") / "__init__.py"
        assert f'"{name}"' in path.read_text().partition("__all__")[2], f"from {module} import {name}"


@pytest.mark.parametrize("operator", docs.OPERATORS)
def test_every_argument_of_an_operator_has_a_row_with_a_meaning(operator: str) -> None:
    page = (ROOT / "docs/reference/operators.md").read_text()
    table = page.partition(f"<!-- begin {operator} -->")[2].partition(f"<!-- end {operator} -->")[0]
    rows = {row[0]: row for row in re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.*) \|$", table, re.MULTILINE)}
    kind, module = docs.OPERATORS[operator]
    declared = set(docs.constructor_arguments(docs._class(module, operator)))
    assert set(rows) == declared
    assert declared >= set(jobs.ARGUMENTS[kind]), "an argument that is checked, and that nobody can give"
    assert all(meaning.strip() for *_, meaning in rows.values())


def test_the_tables_of_the_operators_page_name_what_is_allowed() -> None:
    page = (ROOT / "docs/reference/operators.md").read_text()
    assert ", ".join(METRICS_ALLOWED) in page
    for kind in SOURCE_KEYS:
        assert f"`{kind}`" in page, kind


def test_the_page_of_combinations_names_each_with_what_the_table_says() -> None:
    page = (ROOT / combinations.PAGE).read_text()
    for accelerator in seams.ACCELERATORS:
        matrix = page.partition(f"### {accelerator}\n")[2].partition("\n#")[0]
        head, *rows = [
            [cell.strip(" `") for cell in line.strip("|").split("|")]
            for line in matrix.splitlines()
            if line.startswith("| ")
        ]
        assert [row[0] for row in rows] == list(seams.STRATEGIES)
        for strategy, *cells in rows:
            for precision, cell in zip(head[1:], cells, strict=True):
                assert (cell == "yes") == (seams.refusal(accelerator, strategy, precision) is None)


def test_the_tests_that_decisions_name_exist() -> None:
    for page in sorted((ROOT / "docs/decisions").glob("0*.md")):
        held = page.read_text().partition("## Held by")[2]
        named = re.findall(r"`(tests/[\w/.]*)`", held)
        assert named, page.name
        assert all((ROOT / name).exists() for name in named), (page.name, named)


def test_every_decision_is_listed_and_has_its_parts() -> None:
    listed = (ROOT / "docs/decisions/README.md").read_text()
    for page in sorted((ROOT / "docs/decisions").glob("0*.md")):
        assert f"({page.name})" in listed
        assert re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE) == ["Context", "Choice", "Refused", "Held by"]


def test_an_operator_s_docstring_is_read_argument_by_argument() -> None:
    docstring = "Head.\n\nArgs:\n    a, b: of both,\n        on two lines.\n    c: see `d: e`.\n\nRaises:\n    X: y"
    assert docs.argument_texts(docstring) == {
        "a": "of both, on two lines.",
        "b": "of both, on two lines.",
        "c": "see `d: e`.",
    }


def test_a_block_is_filled_between_its_markers_and_nothing_else_changes() -> None:
    text = "before\n<!-- begin x -->\nold\n<!-- end x -->\nafter\n"
    assert docs.filled(text, {"x": "new", "y": "none"}) == text.replace("old", "new")


def test_the_first_dag_of_the_how_to_is_a_dag(tmp_path: Path) -> None:
    """In a process of its own: it needs an Airflow home, and must not need torch or Spark to be parsed."""
    blocks = code_blocks(ROOT / "docs/how-to/first-dag.md", "python")
    dag = tmp_path / "trips.py"
    dag.write_text(next(block for block in blocks if "with DAG(" in block) + _TELL)
    environment = os.environ | {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, str(dag)], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told == {"tasks": ["partition", "train", "export", "validate"], "heavy": []}


_TELL = """
import json
import sys

print(json.dumps({
    "tasks": [task.task_id for task in partition.dag.topological_sort()],
    "heavy": [name for name in ("torch", "pyspark", "pytorch_lightning") if name in sys.modules],
}))
"""

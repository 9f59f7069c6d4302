"""Keeps the parts of the documentation that are made from the code up to date.

    python -m tools.docs            writes them
    python -m tools.docs --check    exits with 1 when one is out of date

docs/reference/errors.md and combinations.md are made as a whole. In the other pages what stands between `<!-- begin NAME -->` and
`<!-- end NAME -->` is replaced.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from airflow_provider_sparkddp.spec import compat, errors, jobs
from tools import combinations
from tools.error_texts import TEXTS

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = "dags/examples/flight_delay.py"
ERRORS_PAGE = "docs/reference/errors.md"
FILLED_PAGES = ("README.md", "docs/reference/operators.md")
OPERATORS: dict[str, tuple[str, str]] = {
    "PartitionToParquetOperator": (jobs.PARTITION, "partition"),
    "SparkDDPTrainOperator": (jobs.TRAIN, "train"),
    "ModelExportOperator": (jobs.EXPORT, "export"),
    "ModelValidationOperator": (jobs.VALIDATE, "validate"),
}
TYPES = {
    "int": "whole number",
    "float": "number",
    "number": "number",
    "bool": "True or False",
    "str": "text",
    "names": "list of names",
    "name_or_names": "name or list of names",
    "columns": "list of names, or dict of name -> SQL expression",
    "dict": "dict",
    "name_or_dict": "name or dict",
    "any": "see its meaning",
}
# OnSpark's, which the operators on Spark inherit.
PY_FILES = (
    "files, zips, pure Python wheels and folders of Python code. A folder with `__init__.py` is imported by its own name; of "
    "another the contents go on the path. Relative ones lie beside the DAG file. (templated)"
)
GROUPS = {
    "1": "1xx: arguments, refused before Spark is asked",
    "2": "2xx: the data",
    "3": "3xx: storage and the cluster",
    "4": "4xx: training",
    "5": "5xx: models and validation",
}
ERRORS_HEAD = """# Errors

<!-- Made by `python -m tools.docs` from spec/errors.py and tools/error_texts.py: don't edit it here. -->

Every error that this provider raises by itself begins with a code, says what was set or found and what that conflicts
with, and ends with what to do:

    [SDDP-303] Fewer Spark slots than ranks: 4 ranks need 4 Spark slots at once; local[2] offers 2 … What to do: …

It stands at the end of the task's log in Airflow. Errors that a retry may mend follow the task's `retries`; all others
fail the task at once (`AirflowFailException`). Errors in arguments that are written out in the DAG file show as an
import error of the DAG.
"""


def errors_page() -> str:
    """The whole page: a table of all codes, then each with its explanation."""
    rows = [
        f"| [{code}](#{code.lower()}) | {kind.title} | {'yes' if kind.retry else 'no'} |"
        for code, kind in errors.CODES.items()
    ]
    table = "\n".join(["| code | title | retried |", "|---|---|---|", *rows])
    return "\n".join([ERRORS_HEAD, table, "", *_error_sections()])


def _error_sections() -> Iterator[str]:
    group = ""
    for code, kind in errors.CODES.items():
        if code[5] != group:
            group = code[5]
            yield f"## {GROUPS[group]}\n"
        text = TEXTS[code]
        retried = "Airflow's retries apply." if kind.retry else "Not retried."
        yield f"### {code}\n\n**{kind.title}.** {text.meaning}\n"
        yield f"- Usual cause: {text.cause}\n- What to do: {text.remedy}\n- {retried}\n"


def blocks() -> dict[str, str]:
    """Name of a marker -> what stands between its begin and its end."""
    example = (ROOT / EXAMPLE).read_text()
    return {
        EXAMPLE: f"```python\n{example}```",
        "not built": "\n".join(_not_built()),
        **{name: "\n".join(_arguments(name)) for name in OPERATORS},
    }


def _not_built() -> Iterator[str]:
    yield "| where | argument | what it will do |"
    yield "|---|---|---|"
    merged: dict[tuple[str, str], list[str]] = {}
    for (kind, name), purpose in compat.NOT_BUILT.items():
        merged.setdefault((name, purpose), []).append(kind)
    for (name, purpose), kinds in merged.items():
        yield f"| {', '.join(kinds)} | `{name}` | {purpose} |"
    for name, purpose in compat.NOT_BUILT_TRAINER.items():
        yield f"| train | `trainer['{name}']` | {purpose} |"


def _arguments(operator: str) -> Iterator[str]:
    """A table of an operator's own arguments, from its signature, its docstring and the declared types."""
    kind, module = OPERATORS[operator]
    declared = jobs.ARGUMENTS[kind]
    yield "| argument | type | default | meaning |"
    yield "|---|---|---|---|"
    for name, default in constructor_arguments(_class(module, operator)).items():
        required = default in ("", "None") and name in declared and declared[name].required
        type_ = TYPES[declared[name].type] if name in declared else "list of paths"
        yield f"| `{name}` | {type_} | {'required' if required else f'`{default}`'} | {_cell(_meaning(operator, name))} |"


def _meaning(operator: str, name: str) -> str:
    """From the operator's docstring, following "as for <another operator>"."""
    kind, module = OPERATORS[operator]
    text = argument_texts(ast.get_docstring(_class(module, operator)) or "").get(name, "")
    if text.startswith("as for "):
        return _meaning(text.removeprefix("as for ").partition(".")[0], name)
    if text.startswith("refused until"):
        purpose = compat.NOT_BUILT.get((kind, name))
        return "not built yet, refused when set" + (f": {purpose}" if purpose else "")
    return text or (PY_FILES if name == "py_files" else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _class(module: str, name: str) -> ast.ClassDef:
    """Read, not imported: this needs no Airflow."""
    tree = ast.parse((ROOT / f"airflow_provider_sparkddp/operators/{module}.py").read_text())
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def constructor_arguments(node: ast.ClassDef) -> dict[str, str]:
    """Name -> default as it is written; py_files too where the base class takes it."""
    init = next(item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__")
    defaults = [ast.unparse(value) if value else "" for value in init.args.kw_defaults]
    found = dict(zip((argument.arg for argument in init.args.kwonlyargs), defaults, strict=True))
    return found if "py_files" in found else {**found, "py_files": "None"}


def argument_texts(docstring: str) -> dict[str, str]:
    """The `Args:` of a docstring: name -> text; `a, b: text` gives the text to both."""
    section = re.search(r"^Args:\n((?:    .*\n?|\n)*)", docstring, re.MULTILINE)
    entries = re.split(r"\n(?=    \w)", section.group(1).rstrip()) if section else []
    texts = {}
    for entry in entries:
        names, _, text = " ".join(entry.split()).partition(": ")
        texts.update({name.strip(): text for name in names.split(",")})
    return texts


def filled(text: str, replacements: Mapping[str, str]) -> str:
    """The page with each known block between its markers replaced."""
    for name, content in replacements.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        if begin in text:
            before, _, rest = text.partition(begin)
            after = rest.partition(end)[2]
            text = f"{before}{begin}\n{content}\n{end}{after}"
    return text


def pages() -> dict[str, str]:
    """Page -> what it should hold."""
    replacements = blocks()
    made = {page: filled((ROOT / page).read_text(), replacements) for page in FILLED_PAGES}
    return {ERRORS_PAGE: errors_page(), combinations.PAGE: combinations.page(), **made}


def main() -> int:
    """Exit status 1 when a page was out of date and only checked."""
    parser = argparse.ArgumentParser(description="Write the parts of the documentation that are made from the code.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a page is out of date")
    check = parser.parse_args().check
    stale = [p for p, text in pages().items() if not (ROOT / p).exists() or (ROOT / p).read_text() != text]
    for page in stale:
        print(f"{page} is out of date: python -m tools.docs" if check else f"wrote {page}")
        if not check:
            (ROOT / page).write_text(pages()[page])
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

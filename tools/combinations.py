"""docs/reference/combinations.md, made from the table of spec/seams.py by `python -m tools.docs`."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_sparkddp.spec import compat, seams

PAGE = "docs/reference/combinations.md"
HEAD = """# Hardware, strategy and precision

<!-- Made by `python -m tools.docs` from spec/seams.py and spec/compat.py: don't edit it here. -->

Three settings of `trainer`, each free of the other two, under Lightning's own names:

```python
trainer = {"accelerator": "cpu", "strategy": "ddp", "precision": "bf16-mixed"}
```

What can't go together is refused while the DAG is parsed ([SDDP-104](errors.md#sddp-104)), with the reason. Where a
value is a template, it is refused when the task runs, before Spark is asked.

Each of the three may be your own: `{"$import": "my_code:MyStrategy", "kwargs": {…}}`, of a class that extends
Lightning's `Accelerator`, `Strategy` or `Precision` of the same package as the model. The rank's device, the process
group and the environment are given to it. The same form sets the arguments of Lightning's own classes:

```python
trainer = {"strategy": {"$import": "pytorch_lightning.strategies:DDPStrategy", "kwargs": {"static_graph": True}}}
```

A strategy that starts processes itself is refused: Spark started them.
"""
MEANING = {
    "accelerator": "Devices come from Spark's assigned addresses and from nothing else ([GPUs](../how-to/gpus.md)).",
    "strategy": "How the ranks agree.",
    "precision": "The number format of weights and operations.",
}
DEFAULTS = {"accelerator": "auto", "strategy": "auto", "precision": "32-true"}


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_values(), *_matrices(), *_former()]) + "\n"


def counts() -> dict[str, int]:
    """How many combinations there are, are allowed, and are refused."""
    refused = sum(seams.refusal(*each) is not None for each in seams.combinations())
    total = sum(1 for _ in seams.combinations())
    return {"all": total, "allowed": total - refused, "refused": refused}


def _values() -> Iterator[str]:
    for name, known in seams.VALUES.items():
        yield f"## {name}\n\n{MEANING[name]} Default: `{DEFAULTS[name]}`.\n"
        yield "| value | other names | what it is |\n|---|---|---|"
        for value, meaning in known.items():
            others = [f"`{other}`" for other, full in seams.SYNONYMS[name].items() if full == value and other != "None"]
            yield f"| `{value}` | {', '.join(others)} | {meaning} |"
        yield ""


def _matrices() -> Iterator[str]:
    found = counts()
    yield "## Which go together\n"
    yield f"Of {found['all']} combinations {found['allowed']} are allowed and {found['refused']} refused."
    yield "A number is the reason below.\n"
    for accelerator in seams.ACCELERATORS:
        yield f"### {accelerator}\n"
        yield f"| | {' | '.join(seams.PRECISIONS)} |"
        yield "|---" * (len(seams.PRECISIONS) + 1) + "|"
        for strategy in seams.STRATEGIES:
            cells = [_cell(seams.refusal(accelerator, strategy, precision)) for precision in seams.PRECISIONS]
            yield f"| `{strategy}` | {' | '.join(cells)} |"
        yield ""
    yield "`auto` is refused where cpu or cuda is, since it may become either.\n"
    yield "Reasons:\n"
    for number, rule in enumerate(seams.RULES, 1):
        yield f"{number}. {rule.reason[0].upper()}{rule.reason[1:]}. {rule.remedy}"
    yield ""


def _cell(rule: seams.Rule | None) -> str:
    return "yes" if rule is None else str(seams.RULES.index(rule) + 1)


def _former() -> Iterator[str]:
    yield "## Names of earlier days\n\nRefused, naming the successor.\n"
    yield "| setting | was | now |\n|---|---|---|"
    for name, former in seams.FORMER.items():
        for was, now in former.items():
            yield f"| `{name}` | `{was}` | {now} |"
    for was, now in compat.FORMER_ARGUMENTS.items():
        yield f"| an argument | `{was}` | {now} |"

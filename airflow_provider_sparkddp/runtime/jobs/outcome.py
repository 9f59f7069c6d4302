"""What a job's run gives back, and the lines that a person reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from airflow_provider_sparkddp.runtime.jobs.stage_progress import stages_told


@dataclass
class Outcome:
    """values become the XCom, summary goes to the log, seconds names the phases, report stands in result.json alone."""

    values: dict[str, Any] = field(default_factory=dict)
    summary: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str, spark: Any = None) -> Iterator[None]:
        """Times a part of the job, and tells that it begins; with `spark` also how far its tasks are."""
        print(f"sparkddp: {name} …", flush=True)
        started = monotonic()
        with stages_told(spark, name) if spark else nullcontext():
            yield
        self.seconds[name] = monotonic() - started


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Lines of a table with aligned columns, to the right but for the first."""
    text = [[_cell(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *text]) for i in range(len(header))]
    lines = [list(header), ["-" * width for width in widths], *text]
    return ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines]


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

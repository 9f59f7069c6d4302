"""A record: what was measured, against which limits, on what machine; as a page that a person reads."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.measure import Ratio, Run, medians, ratio, seconds


@dataclass(frozen=True)
class Table:
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def lines(self) -> list[str]:
        """As Markdown; numbers to the right."""
        body = [[_cell(cell) for cell in row] for row in self.rows]
        rule = ["---", *("---:" for _ in self.header[1:])]
        return [f"## {self.title}", "", *(f"| {' | '.join(line)} |" for line in (self.header, rule, *body)), ""]


@dataclass(frozen=True)
class Target:
    """A promise: `measured` is at most `limit`. Where nothing could be measured, it is neither kept nor broken."""

    what: str
    measured: float | Ratio | None
    limit: float

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        value = self.measured.median if isinstance(self.measured, Ratio) else self.measured
        return "met" if value <= self.limit else "missed"


@dataclass(frozen=True)
class Record:
    """One run of a case. `conditions`: what was set; `notes`: what a reader must know to read the tables."""

    title: str
    conditions: Mapping[str, Any]
    targets: Sequence[Target]
    tables: Sequence[Table]
    notes: Sequence[str] = ()
    java: str | None = None

    def to_text(self, case: str, facts: Mapping[str, Any], warning: str = "") -> str:
        verdicts = [(t.what, t.measured, t.limit, t.verdict) for t in self.targets]
        head = {**self.conditions, **facts}
        parts = [
            f"# {case}: {self.title}",
            "",
            *([f"**{warning}**", ""] if warning else []),
            *Table("Targets", ("what", "measured", "limit", "verdict"), verdicts).lines(),
            *(line for table in self.tables for line in table.lines()),
            *(line for note in self.notes for line in (note, "")),
            *Table("Conditions", ("what", "value"), list(head.items())).lines(),
        ]
        return "\n".join(parts)


def file_name(case: str, hardware: str, month: str) -> str:
    """`<case>_<hardware>_<YYYY-MM>.md`: one record a month, of the last run."""
    return f"{case}_{hardware}_{month}.md"


def ratio_table(runs: Mapping[str, Sequence[Run]], baseline: str) -> Table:
    """Each variant's median seconds, its ratio to the baseline, and all its rounds."""
    base = seconds(runs[baseline])
    rows = [(name, statistics.median(seconds(done)), *_ratio_cells(seconds(done), base)) for name, done in runs.items()]
    return Table("Times", ("way", "median s", "ratio", "least of pairs", "greatest of pairs", "rounds, s"), rows)


def _ratio_cells(ours: Sequence[float], baseline: Sequence[float]) -> tuple[float, float, float, str]:
    found = ratio(ours, baseline)
    return found.median, found.low, found.high, " ".join(f"{each:.2f}" for each in ours)


def phase_table(runs: Mapping[str, Sequence[Run]]) -> Table:
    """Where the time goes: median seconds of each phase, for the variants that tell them."""
    phases = {name: medians([run.phases for run in done]) for name, done in runs.items()}
    told = {name: each for name, each in phases.items() if each}
    names = dict.fromkeys(phase for each in told.values() for phase in each)
    rows = [(phase, *(each.get(phase) for each in told.values())) for phase in names]
    return Table("Phases, median seconds", ("phase", *told), rows)


def figure_table(title: str, runs: Mapping[str, Sequence[Run]], *, without: str | None = None) -> Table:
    """What was written or held: the median of each figure but `without`, one variant a row."""
    figures = {name: medians([run.figures for run in done]) for name, done in runs.items()}
    names = [name for name in dict.fromkeys(n for each in figures.values() for n in each) if name != without]
    return Table(title, ("way", *names), [(way, *(each.get(n) for n in names)) for way, each in figures.items()])


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

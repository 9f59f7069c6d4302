"""The benchmarks' own arithmetic, their rounds and their records; no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks import machine
from benchmarks import run as command
from benchmarks.cases.partition_groups import groups_cut
from benchmarks.cases.partition_growth import microseconds
from benchmarks.measure import Run, Variant, alternate, medians, ratio, spread
from benchmarks.record import Record, Table, Target, figure_table, file_name, phase_table, ratio_table
from benchmarks.tables import zipf_sizes

PAIRS = st.lists(st.tuples(st.floats(0.01, 1e4), st.floats(0.01, 1e4)), min_size=1, max_size=9)


def test_a_ratio_is_that_of_the_medians_and_its_spread_that_of_the_rounds() -> None:
    found = ratio([2.0, 9.0, 3.0], [2.0, 3.0, 4.0])
    assert (found.median, found.low, found.high) == (1.0, 0.75, 3.0)
    assert str(found) == "1.000 (0.750–3.000)"


@given(PAIRS)
def test_the_ratio_lies_within_its_spread(pairs: list[tuple[float, float]]) -> None:
    found = ratio([one for one, _ in pairs], [other for _, other in pairs])
    assert found.low * (1 - 1e-9) <= found.median <= found.high * (1 + 1e-9)


@given(PAIRS, st.floats(0.01, 100))
def test_a_slower_machine_changes_no_ratio(pairs: list[tuple[float, float]], factor: float) -> None:
    ours, base = [one for one, _ in pairs], [other for _, other in pairs]
    slower = ratio([factor * each for each in ours], [factor * each for each in base])
    fast = ratio(ours, base)
    assert [slower.median, slower.low, slower.high] == pytest.approx([fast.median, fast.low, fast.high])


@pytest.mark.parametrize(("ours", "base"), [([1.0, 2.0], [1.0]), ([], [])])
def test_runs_that_are_no_pairs_have_no_ratio(ours: list[float], base: list[float]) -> None:
    with pytest.raises(ValueError, match="no pairs"):
        ratio(ours, base)


def test_medians_take_what_each_run_tells() -> None:
    assert medians([{"a": 1.0}, {"a": 5.0, "b": 2.0}, {"a": 3.0}]) == {"a": 3.0, "b": 2.0}
    assert (spread([2.0, 3.0, 2.5]), spread([7.0])) == (1.5, 1.0)
    assert microseconds(1_000_000, [Run(1.0), Run(9.0), Run(2.0)]) == 2.0


def variant(name: str, events: list[str]) -> Variant:
    """Writes a file, tells what it does in `events`, and looks at what it wrote."""

    def work(folder: Path) -> Mapping[str, float]:
        events.append(name)
        folder.mkdir()
        (folder / "file").write_text(name)
        return {"write": 0.5}

    return Variant(name, work, lambda folder: {"bytes": len((folder / "file").read_text())})


def test_variants_run_in_turn_each_in_a_new_folder_after_a_warm_up(tmp_path: Path) -> None:
    events: list[str] = []
    told: list[str] = []
    variants = [variant("base", events), variant("ours!", events)]
    runs = alternate(variants, repeat=2, scratch=tmp_path, before=lambda: events.append("before"), tell=told.append)
    assert events == ["before", "base", "before", "ours!"] * 3
    assert {name: len(done) for name, done in runs.items()} == {"base": 2, "ours!": 2}
    assert [(run.phases, run.figures) for run in runs["ours!"]] == [({"write": 0.5}, {"bytes": 5})] * 2
    assert [line.rpartition(": ")[0] for line in told[1:4]] == [
        "warm-up: ours!",
        "round 1 of 2: base",
        "round 1 of 2: ours!",
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    def work(folder: Path) -> Mapping[str, float]:
        folder.mkdir()
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        alternate([Variant("full", work)], repeat=1, scratch=tmp_path)
    assert list(tmp_path.iterdir()) == []


@given(st.integers(40, 3_000), st.integers(1, 1_000), st.floats(0.03, 0.6))
def test_zipf_sizes_are_all_rows_with_the_largest_as_asked(groups: int, rows_a_group: int, largest: float) -> None:
    rows = groups * rows_a_group
    sizes = zipf_sizes(rows, groups, largest)
    assert (len(sizes), sizes.sum(), sizes.dtype) == (groups, rows, np.int64)
    assert sizes.min() >= 1
    assert (np.diff(sizes) <= 0).all()
    assert np.array_equal(sizes, zipf_sizes(rows, groups, largest))
    # Each group has a row to begin with; the share is of the rest, to one row and another of what rounding leaves.
    assert abs(sizes[0] - 1 - largest * (rows - groups)) <= 2


def test_sizes_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="no such sizes"):
        zipf_sizes(100, 200)
    with pytest.raises(ValueError, match="no such sizes"):
        zipf_sizes(100, 10)


def test_groups_that_lie_in_two_ranks_are_counted_once() -> None:
    assert groups_cut([{"a", "b"}, {"b", "c"}, {"b", "c", "d"}]) == 2
    assert groups_cut([{"a"}, {"b"}, set()]) == 0


@given(st.floats(0, 10), st.floats(0, 10))
def test_a_target_is_met_up_to_its_limit(measured: float, limit: float) -> None:
    assume(measured != limit)
    assert Target("x", measured, limit).verdict == ("met" if measured < limit else "missed")
    assert Target("x", limit, limit).verdict == "met"


def test_a_record_shows_ratios_phases_figures_and_verdicts() -> None:
    runs = {
        "base": [Run(2.0), Run(4.0), Run(3.0)],
        "ours": [
            Run(2.2, {"write": 1.5}, {"files": 4}),
            Run(4.0, {"write": 2.5}, {"files": 4}),
            Run(3.6, {}, {"files": 4}),
        ],
    }
    targets = [
        Target("speed", ratio([2.2, 4.0, 3.6], [2.0, 4.0, 3.0]), 1.15),
        Target("memory", None, 500),
    ]
    tables = [ratio_table(runs, "base"), phase_table(runs), figure_table("Layout", runs)]
    text = Record("ours against base", {"rows": 1_000}, targets, tables).to_text("some_case", {"cores": "2"}, "A try.")
    for line in (
        "# some_case: ours against base",
        "**A try.**",
        "| speed | 1.200 (1.000–1.200) | 1.150 | missed |",
        "| memory | - | 500 | not measured |",
        "| ours | 3.600 | 1.200 | 1.000 | 1.200 | 2.20 4.00 3.60 |",
        "| write | 2.000 |",
        "| base | - |",
        "| ours | 4 |",
        "| rows | 1,000 |",
        "| cores | 2 |",
    ):
        assert line in text.splitlines()


def test_numbers_are_written_for_a_person() -> None:
    lines = Table("T", ("a", "b"), [("x", 1234567.8), ("y", 12.34), ("z", 1_000_000), ("f", True)]).lines()
    assert lines[4:8] == ["| x | 1,234,568 |", "| y | 12.3 |", "| z | 1,000,000 |", "| f | True |"]


def test_a_record_is_named_by_case_hardware_and_month_and_names_no_machine() -> None:
    assert file_name("partition_rows", "2-cores", "2026-07") == "partition_rows_2-cores_2026-07.md"
    assert machine.hardware() == f"{machine.cores()}-cores"
    assert set(machine.facts("17")) == {"cores", "memory", "Java", "Python", "Spark", "pyarrow", "numpy", "commit"}


@pytest.mark.parametrize("name", command.names())
def test_each_case_says_what_it_measures(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = command.case(name)
    assert callable(module.run) and 0 < module.SMOKE_ROWS <= module.ROWS
    assert command.main(["--list"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(name))
    assert line.endswith(str(module.__doc__).splitlines()[0]) and f"{module.ROWS:,} rows" in line


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name a case"),
        (["partition_cols"], "partition_rows"),
        (["partition_rows", "--rows", "7"], "too small for partition_rows"),
        (["partition_rows", "--repeat", "0"], "use 1 or more"),
        (["partition_rows", "--data", "nowhere"], "there is no folder nowhere"),
    ],
)
def test_a_wrong_argument_is_told(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_smoke_run_measures_and_writes_its_record_where_it_is_told(tmp_path: Path) -> None:
    pytest.importorskip("airflow_provider_sparkddp.runtime.partition.groups", reason="there is no planning yet")
    out, data = tmp_path / "records", tmp_path / "data"
    data.mkdir()
    assert command.main(["partition_planning", "--smoke", "--out", str(out), "--data", str(data)]) == 0
    (record,) = out.iterdir()
    text = record.read_text()
    assert record.name.startswith(f"partition_planning_{machine.hardware()}_")
    assert command.SMOKE in text and text.count("| met |") == 4
    assert list(data.iterdir()) == []

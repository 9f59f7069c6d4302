"""The fingerprint of a source changes when its rows, the settings or the code may have, and at nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.hooks import plan
from airflow_provider_sparkddp.runtime.jobs import partition
from airflow_provider_sparkddp.runtime.lifecycle.reuse import fingerprint
from airflow_provider_sparkddp.runtime.sources import reading
from airflow_provider_sparkddp.runtime.sources.state import source_state
from airflow_provider_sparkddp.spec.jobs import CodeRef, Job
from tests.support import jobs
from tests.support.refusals import refused

CSV = {"format": "csv", "options": {"header": "true"}}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two CSV files in a folder whose name has to be encoded in a URI."""
    folder = tmp_path / "späte flüge 100+"
    folder.mkdir()
    (folder / "a.csv").write_text("x\n1\n2\n")
    (folder / "b.csv").write_text("x\n3\n")
    return folder


def job_of(tmp_path: Path, source: dict[str, Any], **settings: Any) -> Job:
    made = jobs.job("partition", tmp_path, source=source, reuse=True, num_nodes=1, **settings)
    return replace(made, settings={**made.settings, "storage_root": tmp_path.as_uri()})


def of(spark: Any, job: Job) -> str:
    return fingerprint(spark, job, reading.read(spark, job.settings["source"]))


def of_csv(table: Path, **change: Any) -> dict[str, Any]:
    return {**CSV, "path": f"file://{table}", **change}


def _rows(table: Path) -> None:
    (table / "a.csv").write_text("x\n1\n2\n4\n")


def _touch(table: Path) -> None:
    """Other rows of the same size: the time alone tells."""
    before = (table / "a.csv").stat()
    (table / "a.csv").write_text("x\n1\n9\n")
    os.utime(table / "a.csv", ns=(before.st_atime_ns, before.st_mtime_ns + 2_000_000_000))


def _add(table: Path) -> None:
    (table / "c.csv").write_text("x\n5\n")


def _remove(table: Path) -> None:
    (table / "b.csv").unlink()


def _rename(table: Path) -> None:
    (table / "b.csv").rename(table / "c.csv")


@pytest.mark.parametrize("change", [_rows, _touch, _add, _remove, _rename])
def test_files_that_change_change_it(
    local_spark: Any, table: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    job = job_of(tmp_path, of_csv(table))
    before = of(local_spark, job)
    assert of(local_spark, job) == before
    change(table)
    assert of(local_spark, job) != before


def test_one_file_is_looked_at_without_its_neighbours(local_spark: Any, table: Path, tmp_path: Path) -> None:
    job = job_of(tmp_path, of_csv(table / "a.csv"))
    before = of(local_spark, job)
    (table / "b.csv").write_text("x\n3\n4\n")
    _add(table)
    assert of(local_spark, job) == before
    _touch(table)
    assert of(local_spark, job) != before


def test_the_state_is_that_of_every_file_wherever_it_lies(local_spark: Any, table: Path, tmp_path: Path) -> None:
    (table / "day=2" / "deep").mkdir(parents=True)
    (table / "day=2" / "c.csv").write_text("x\n5\n")
    (table / "day=2" / "_hidden.csv").write_text("x\n6\n")
    for path in ("a.csv", "b.csv", "day=2/c.csv"):
        os.utime(table / path, (7, 7))
    source = of_csv(table, options={"header": "true", "recursiveFileLookup": "true"})
    state = source_state(local_spark, source, reading.read(local_spark, source))
    assert [(name.rpartition("/")[2], *facts) for name, *facts in state["files"]] == [
        ("a.csv", 6, 7000),
        ("b.csv", 4, 7000),
        ("c.csv", 4, 7000),
    ]
    (table / "day=2" / "_hidden.csv").write_text("x\n6\n7\n")
    assert source_state(local_spark, source, reading.read(local_spark, source)) == state, "Spark does not read it"


def test_files_without_a_time_are_refused(local_spark: Any, table: Path) -> None:
    os.utime(table / "a.csv", (0, 0))
    source = of_csv(table)
    with refused("SDDP-101", "a.csv", "keeps no time of modification", "fingerprint="):
        source_state(local_spark, source, reading.read(local_spark, source))


@pytest.mark.parametrize(
    "change",
    [
        {"num_nodes": 2},
        {"devices": 2},
        {"columns": ["x"]},
        {"where": "x > 1"},
        {"validation": 0.1},
        {"seed": 1},
        {"row_group_rows": 10},
        {"compression": "zstd"},
    ],
    ids=str,
)
def test_a_setting_that_decides_on_the_output_changes_it(
    local_spark: Any, table: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    job = job_of(tmp_path, of_csv(table))
    assert of(local_spark, replace(job, settings={**job.settings, **change})) != of(local_spark, job)


def test_options_of_the_source_change_it(local_spark: Any, table: Path, tmp_path: Path) -> None:
    job = job_of(tmp_path, of_csv(table))
    other = job_of(tmp_path, of_csv(table, options={"header": "false"}))
    assert of(local_spark, other) != of(local_spark, job)


@pytest.mark.parametrize(
    "change",
    [
        {"retention": 3.0},
        {"executors_timeout": 1.0},
        {"cpus_per_rank": 2},
        {"run_dir": "file:///elsewhere"},
        {"storage_root": "file:///elsewhere"},
        {"compare_with": "file:///last/manifest.json"},
    ],
    ids=str,
)
def test_a_setting_that_says_nothing_of_the_output_does_not(
    local_spark: Any, table: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    job = job_of(tmp_path, of_csv(table))
    assert of(local_spark, replace(job, settings={**job.settings, **change})) == of(local_spark, job)


def test_another_try_run_or_task_has_the_same(local_spark: Any, table: Path, tmp_path: Path) -> None:
    job = job_of(tmp_path, of_csv(table))
    other = replace(job, nonce="n2", directory="file:///another/try", label="dag.other", owner="dag/run/other/unmapped")
    assert of(local_spark, other) == of(local_spark, job)


def test_code_changes_it_and_where_the_code_lies_does_not(local_spark: Any, table: Path, tmp_path: Path) -> None:
    def with_code(*code: CodeRef) -> str:
        return of(local_spark, replace(job_of(tmp_path, of_csv(table)), code=code))

    first = CodeRef("file:///run1/code/a.zip", "a" * 64, ("m",))
    assert len({with_code(), with_code(first), with_code(replace(first, sha256="b" * 64))}) == 3
    assert with_code(replace(first, uri="file:///run2/code/a.zip")) == with_code(first)


def test_how_spark_reads_changes_it(local_spark: Any, table: Path, tmp_path: Path) -> None:
    job = job_of(tmp_path, of_csv(table))
    before = of(local_spark, job)
    # As if the application had been submitted with it.
    submitted = local_spark.sparkContext._conf
    submitted.set("spark.sql.ansi.enabled", "false")
    try:
        assert of(local_spark, job) != before
    finally:
        submitted._jconf.remove("spark.sql.ansi.enabled")
    assert of(local_spark, job) == before


@pytest.fixture
def stored(local_spark: Any) -> Iterator[str]:
    """A table of the catalog, with a view on it."""
    local_spark.range(10).write.saveAsTable("default.`flights`")
    local_spark.sql("CREATE VIEW seen AS SELECT * FROM default.`flights`")
    yield "default.`flights`"
    local_spark.sql("DROP VIEW seen")
    local_spark.sql("DROP TABLE default.`flights`")


def test_a_table_of_the_catalog_is_known_by_its_files(local_spark: Any, tmp_path: Path, stored: str) -> None:
    job = job_of(tmp_path, {"table": stored})
    before = of(local_spark, job)
    assert of(local_spark, job) == before
    local_spark.range(3).write.insertInto(stored)
    inserted = of(local_spark, job)
    assert inserted != before
    local_spark.sql(f"ALTER TABLE {stored} ADD COLUMN more INT")
    assert of(local_spark, job) != inserted, "the same files, another schema"


@pytest.mark.parametrize("view", ["seen", "for_now"])
def test_a_view_is_not_known_by_its_files(local_spark: Any, tmp_path: Path, stored: str, view: str) -> None:
    local_spark.range(3).createOrReplaceTempView("for_now")
    with refused("SDDP-101", f"the view {view}", "fingerprint="):
        of(local_spark, job_of(tmp_path, {"table": view}))


SILENT: list[dict[str, Any]] = [
    {"sql": "SELECT 1 AS x"},
    {"callable": "tests.spark.test_reuse:one_row", "kwargs": {}},
]


def one_row(spark: Any) -> Any:
    return spark.sql("SELECT 1 AS x")


@pytest.mark.parametrize("source", SILENT, ids=lambda source: next(iter(source)))
def test_what_tells_no_state_is_known_by_the_users_word_alone(
    local_spark: Any, tmp_path: Path, source: dict[str, Any]
) -> None:
    monday, again, tuesday = (job_of(tmp_path, source, fingerprint=day) for day in ("monday", "monday", "tuesday"))
    assert of(local_spark, monday) == of(local_spark, again) != of(local_spark, tuesday)
    # The check refuses it sooner; a value that was known only when the task ran gets as far as this.
    silent = replace(monday, settings={**monday.settings, "fingerprint": None})
    with refused("SDDP-101", repr(next(iter(source))), "fingerprint="):
        of(local_spark, silent)


def test_the_users_word_stands_for_the_files_too(local_spark: Any, table: Path, tmp_path: Path) -> None:
    job = job_of(tmp_path, of_csv(table), fingerprint="v7")
    before = of(local_spark, job)
    _rows(table)
    assert of(local_spark, job) == before


def test_a_reader_that_names_no_files_is_refused(local_spark: Any, tmp_path: Path) -> None:
    source = {"format": "rate", "path": "file:///nothing"}
    with refused("SDDP-101", "names no files"):
        source_state(local_spark, source, local_spark.range(3))


def test_a_folder_without_files_is_a_state(local_spark: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    source = {**CSV, "path": f"file://{tmp_path}/empty"}
    frame = local_spark.read.schema("x int").csv(source["path"])
    assert source_state(local_spark, source, frame) == {"files": []}


def planned(tmp_path: Path, source: dict[str, Any], run: str, number: int = 1, **settings: Any) -> Job:
    """As an operator plans it in the default run_dir, with its job.json where it belongs."""
    given, task = job_of(tmp_path, source, **settings).settings, plan.Task("flights", "partition", run, -1, number)
    run_dir = plan.run_dir(given, tmp_path.as_uri(), task)
    job = plan.plan_job("partition", given, task, run_dir, f"{run}{number}", ())
    storage.write_text(f"{job.directory}/job.json", job.to_text())
    return job


def data_of(job: Job) -> list[str]:
    return storage.files_below(f"{job.directory}/data") if "data" in storage.names(job.directory) else []


def test_a_job_reuses_what_another_run_wrote_until_the_source_changes(
    local_spark: Any, table: Path, tmp_path: Path
) -> None:
    first, second, third = (planned(tmp_path, of_csv(table), run) for run in ("one", "two", "three"))
    written = partition.run(local_spark, first, jobs.wanted).values
    # In the same session, whose settings the first job has changed.
    outcome = partition.run(local_spark, second, jobs.wanted)
    assert outcome.values == written | {"reused": True}
    assert any("nothing was written" in line for line in outcome.summary)
    assert storage.names(second.directory) == ["job.json"]
    _add(table)
    values = partition.run(local_spark, third, jobs.wanted).values
    assert (values["reused"], values["total_rows"]) == (False, {"train": 4})
    assert data_of(third) == sorted(name.removeprefix("data/") for name in values["files"])


def test_a_reused_manifest_whose_files_are_gone_is_made_anew(local_spark: Any, table: Path, tmp_path: Path) -> None:
    first, second = (planned(tmp_path, of_csv(table), run) for run in ("one", "two"))
    partition.run(local_spark, first, jobs.wanted)
    storage.remove_tree(f"{first.directory}/data")
    values = partition.run(local_spark, second, jobs.wanted).values
    assert not values["reused"]
    assert values["manifest"] == f"{second.directory}/manifest.json"


def test_a_try_that_succeeds_cleans_up_and_old_runs_go(local_spark: Any, table: Path, tmp_path: Path) -> None:
    source = of_csv(table)
    old = planned(tmp_path, source, "one")
    partition.run(local_spark, old, jobs.wanted)
    os.utime(Path(old.directory.removeprefix("file://")) / "manifest.json", (1, 1))
    failed = planned(tmp_path, source, "two")
    storage.write_text(f"{failed.directory}/data/_temporary/0/part-0.parquet", "half")
    # Another setting: nothing to reuse.
    mine = planned(tmp_path, source, "two", 2, seed=1, retention=7)
    outcome = partition.run(local_spark, mine, jobs.wanted)
    assert data_of(mine) == sorted(name.removeprefix("data/") for name in outcome.values["files"])
    assert storage.names(failed.directory) == storage.names(old.directory) == ["job.json"]
    assert [line.partition(":")[0] for line in outcome.summary if str(tmp_path / "flights") in line] == [
        "cleaning",
        "retention",
    ]

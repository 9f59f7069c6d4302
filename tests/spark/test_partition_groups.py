"""Groups on Spark: balanced when they are skewed, packed as buckets when they are many, and named when nothing helps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.data.shards import deal
from airflow_provider_sparkddp.runtime.jobs import partition
from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome
from airflow_provider_sparkddp.runtime.partition import groups
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import SPLITS, TRAIN, Manifest, data_uri, rows_of
from tests.support import jobs

ZIPF = """SELECT concat('s', g) AS series, id AS ds, id / 2 AS y FROM (
            SELECT id, cast({groups} * pow((id * 7919 % {rows}) / {rows}, 2) AS int) AS g FROM range(0, {rows}, 1, 4))"""


def run(spark: Any, folder: Path, sql: str, **given: Any) -> tuple[Outcome, Manifest]:
    outcome = partition.run(spark, jobs.job("partition", folder, source={"sql": sql}, **given), jobs.wanted)
    uri = outcome.values["manifest"]
    return outcome, Manifest.from_text(storage.read_text(uri), uri)


def columns(outcome: Outcome, manifest: Manifest, names: Sequence[str]) -> list[tuple[Any, ...]]:
    import pyarrow.parquet as pq

    uri, rows = outcome.values["manifest"], []
    for place, file in enumerate(manifest.files):
        found = pq.ParquetFile(data_uri(uri, file).removeprefix("file://")).read(list(names)).to_pylist()
        rows += [(place, *(row[name] for name in names)) for row in found]
    return rows


def whole(outcome: Outcome, manifest: Manifest, key: str) -> bool:
    """Whether no group of training rows lies in two files."""
    places: dict[Any, set[int]] = {}
    for place, value in columns(outcome, manifest, [key]):
        if manifest.files[place].split == TRAIN:
            places.setdefault(value, set()).add(place)
    return all(len(found) == 1 for found in places.values())


@pytest.mark.parametrize("bucketed", [False, True], ids=["groups", "buckets"])
def test_skewed_groups_are_balanced(
    bucketed: bool, local_spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bucketed:
        monkeypatch.setattr(groups, "MOST_GROUPS", 100)
    outcome, manifest = run(
        local_spark, tmp_path, ZIPF.format(groups=800, rows=40_000), group_by="series", order_by="ds", num_nodes=4
    )
    rows = manifest.rank_rows(TRAIN)
    assert max(rows) <= 1.02 * sum(rows) / 4
    assert whole(outcome, manifest, "series")
    told = next(line for line in outcome.summary if "groups by series" in line)
    assert told.startswith("800 groups by series")
    assert ("buckets of hashes" in told) == bucketed
    assert not any("WARNING" in line for line in outcome.summary)


def test_what_the_driver_holds_is_bounded_however_many_groups_there_are(
    local_spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "BUCKETS", 64)
    monkeypatch.setattr(groups, "MOST_GROUPS", 1000)
    frame = local_spark.range(5000).selectExpr("id AS g", "'train' AS sparkddp_split")
    packing = groups.plan(frame, ["g"], world_size=4, files_per_rank=1)
    assert len(packing.keys) <= 64
    assert packing.bucketed
    assert packing.groups.sum() == 5000
    assert packing.bin_rows(TRAIN).sum() == 5000


def test_a_group_that_nothing_can_balance_is_named(local_spark: Any, tmp_path: Path) -> None:
    sql = "SELECT if(id < 700, 'large', concat('s', id)) AS series, id FROM range(1000)"
    outcome, manifest = run(local_spark, tmp_path, sql, group_by="series", num_nodes=2)
    assert sorted(manifest.rank_rows(TRAIN)) == [300, 700]
    warning = next(line for line in outcome.summary if line.startswith("WARNING"))
    assert "1.40 x the mean" in warning
    assert "series='large'" in warning
    assert "700 rows" in warning


def test_groups_without_a_training_row_are_told(local_spark: Any, tmp_path: Path) -> None:
    sql = "SELECT if(id < 5, 'short', concat('s', id % 3)) AS series, id FROM range(200)"
    held = {"validation": {"last_per_group": 5}, "order_by": "id", "group_by": "series"}
    outcome, _ = run(local_spark, tmp_path, sql, num_nodes=1, **held)
    assert "WARNING: 1 groups have no row for training: all of theirs are held out." in outcome.summary


def test_keys_of_several_columns_and_types(local_spark: Any, tmp_path: Path) -> None:
    sql = "SELECT id % 3 AS a, date_add(date'2013-01-01', cast(id % 4 AS int)) AS `b c`, id FROM range(600)"
    outcome, manifest = run(local_spark, tmp_path, sql, group_by=["a", "b c"], num_nodes=3)
    assert manifest.rank_rows(TRAIN) == [200, 200, 200]
    assert manifest.group_by == ("a", "b c")
    places: dict[Any, set[int]] = {}
    for place, *key in columns(outcome, manifest, ["a", "b c"]):
        places.setdefault(tuple(key), set()).add(place)
    assert len(places) == 12
    assert all(len(found) == 1 for found in places.values())


def test_another_world_size_takes_whole_files(local_spark: Any, tmp_path: Path) -> None:
    sql = ZIPF.format(groups=300, rows=9000)
    _, manifest = run(local_spark, tmp_path, sql, group_by="series", num_nodes=2, files_per_rank=3)
    for world_size in (1, 3, 5, 6):
        shares = deal(manifest.files, TRAIN, world_size)
        assert sum(rows_of(shares)) == 9000
        assert len({piece.file for share in shares for piece in share}) == sum(
            len({piece.file for piece in share}) for share in shares
        )
    with pytest.raises(SparkDDPError, match="6 bins for 7 ranks.*files_per_rank"):
        deal(manifest.files, TRAIN, 7)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(40, 700),
    parts=st.integers(1, 7),
    world_size=st.integers(1, 4),
    files=st.integers(1, 3),
    group=st.booleans(),
    shuffle=st.booleans(),
    held=st.sampled_from([{}, {"validation": 0.3}, {"validation": 0.2, "test": 0.3}]),
    repeated=st.integers(1, 5),
)
def test_the_files_hold_the_source_s_rows_and_no_others(
    local_spark: Any,
    tmp_path: Path,
    rows: int,
    parts: int,
    world_size: int,
    files: int,
    group: bool,
    shuffle: bool,
    held: dict[str, float],
    repeated: int,
) -> None:
    # Rows repeat, so that a lost one and a doubled one can't make up for one another by chance.
    sql = f"SELECT id DIV {repeated} AS k, id % 23 AS g FROM range(0, {rows}, 1, {parts})"
    dealt: dict[str, Any] = {"group_by": "g"} if group else {"shuffle": shuffle}
    if group or shuffle:
        dealt["files_per_rank"] = files
    try:
        outcome, manifest = run(local_spark, tmp_path, sql, num_nodes=world_size, **dealt, **held)
    except SparkDDPError as error:
        assert error.code in ("SDDP-201", "SDDP-202"), "too few held out rows or groups for so many ranks"
        return
    found = sorted(row[1] for row in columns(outcome, manifest, ["k"]))
    assert found == sorted(i // repeated for i in range(rows))
    for split in manifest.shares:
        shares = manifest.shares[split]
        assert sum(rows_of(shares)) == manifest.rows(split)
        if not group:
            each = rows_of(shares)
            assert max(each) - min(each) <= max(8, 0.01 * sum(each) / world_size)
    assert set(manifest.shares) <= set(SPLITS)


def test_the_same_source_gives_the_same_packing_each_time(local_spark: Any) -> None:
    frame = local_spark.sql(ZIPF.format(groups=500, rows=5000)).selectExpr("*", "'train' AS sparkddp_split")
    first = groups.plan(frame, ["series"], 3, 2)
    again = groups.plan(frame.repartition(5), ["series"], 3, 2)
    assert np.array_equal(first.keys, again.keys)
    assert np.array_equal(first.bins, again.bins)


def test_a_source_that_changes_between_reads_loses_no_row_and_is_told(local_spark: Any, tmp_path: Path) -> None:
    source = {"callable": "tests.spark.test_partition_groups:growing", "kwargs": {"folder": str(tmp_path)}}
    job = jobs.job("partition", tmp_path, source=source, group_by="g", num_nodes=2)
    outcome = partition.run(local_spark, job, jobs.wanted)
    uri = outcome.values["manifest"]
    manifest = Manifest.from_text(storage.read_text(uri), uri)
    assert sorted(row[1] for row in columns(outcome, manifest, ["id"])) == list(range(130))
    assert whole(outcome, manifest, "g")
    warning = next(line for line in outcome.summary if line.startswith("WARNING: the source gave"))
    assert "gave 100 rows when groups were counted, and 130" in warning


def growing(spark: Any, folder: str) -> Any:
    """100 rows in 10 groups when it is read first, and 130 in 13 groups when it is read again."""

    def rows(batches: Any) -> Any:
        import pyarrow as pa

        for _ in batches:
            pass
        seen = Path(folder) / "read-once"
        number = 130 if seen.exists() else 100
        seen.touch()
        yield pa.RecordBatch.from_pydict({"id": list(range(number)), "g": [i // 10 for i in range(number)]})

    return spark.range(0, 1, 1, 1).mapInArrow(rows, "id long, g long")

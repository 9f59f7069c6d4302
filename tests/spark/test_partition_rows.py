"""Which rows and columns a partition job keeps, what it makes of their types, and how it tells the splits apart."""

from __future__ import annotations

import datetime as dt
import decimal
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.jobs import partition
from airflow_provider_sparkddp.runtime.jobs.outcome import Outcome
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.manifests import TEST, TRAIN, VALIDATION, Manifest, data_uri
from tests.support import jobs

VIEW = {"table": "panel"}
ROWS, GROUPS = 2000, 40


@pytest.fixture(scope="module", autouse=True)
def panel(local_spark: Any) -> None:
    """2,000 rows of 40 series of unlike lengths: id, series, ds (days), x, flag."""
    local_spark.sql(
        f"""SELECT id, concat('s', cast(pow((id * 7919 % {ROWS}) / {ROWS}, 3) * {GROUPS} AS int)) AS series,
                   date_add(DATE'2013-01-01', cast(id / 10 AS int)) AS ds, id / 4.0d AS x, id % 10 = 3 AS flag
            FROM range(0, {ROWS}, 1, 5)"""
    ).createOrReplaceTempView("panel")


def run(spark: Any, folder: Path, source: dict[str, Any] = VIEW, **settings: Any) -> tuple[Outcome, Manifest]:
    outcome = partition.run(spark, jobs.job("partition", folder, source=source, **settings), jobs.wanted)
    uri = outcome.values["manifest"]
    return outcome, Manifest.from_text(storage.read_text(uri), uri)


def table(outcome: Outcome, manifest: Manifest, split: str | None = None) -> pa.Table:
    """All rows of a split, from the files that the manifest names."""
    files = [f for f in manifest.files if split in (None, f.split)]
    uri = outcome.values["manifest"]
    return pa.concat_tables(pq.ParquetFile(data_uri(uri, f).removeprefix("file://")).read() for f in files)


def refused(spark: Any, folder: Path, source: dict[str, Any] = VIEW, **settings: Any) -> SparkDDPError:
    with pytest.raises(SparkDDPError) as caught:
        run(spark, folder, source, **settings)
    assert not list(folder.rglob("manifest.json"))
    return caught.value


def test_columns_may_be_expressions_and_the_condition_sees_what_they_make(local_spark: Any, tmp_path: Path) -> None:
    columns = {"double x": "x * 2", "s": "upper(series)"}
    outcome, manifest = run(local_spark, tmp_path, columns=columns, where="`double x` >= 990")
    assert [c.name for c in manifest.columns] == ["double x", "s"]
    found = table(outcome, manifest)
    assert sorted(found.column("double x").to_pylist()) == [i / 2 for i in range(1980, 2000)]
    assert set(found.column("s").to_pylist()) <= {f"S{i}" for i in range(GROUPS)}


def test_a_name_that_is_refused_can_be_given_another(local_spark: Any, tmp_path: Path) -> None:
    source = {"sql": "SELECT id, id AS `a.b`, id AS `c``d` FROM range(10)"}
    error = refused(local_spark, tmp_path, source)
    assert (error.code, "'a.b'" in error.message) == ("SDDP-204", True)
    assert "columns=" in error.remedy
    _, manifest = run(local_spark, tmp_path, source, columns={"ab": "`a.b`", "cd": "`c``d`"})
    assert [c.name for c in manifest.columns] == ["ab", "cd"]


def test_what_is_not_wanted_may_have_any_name_and_type(local_spark: Any, tmp_path: Path) -> None:
    source = {"sql": "SELECT id, map('k', id) AS `m.n`, id AS sparkddp_split FROM range(10)"}
    _, manifest = run(local_spark, tmp_path, source, columns=["id"])
    assert [c.name for c in manifest.columns] == ["id"]


def test_a_sample_is_the_same_however_the_input_is_partitioned(local_spark: Any, tmp_path: Path) -> None:
    local_spark.table("panel").repartition(3, "x").createOrReplaceTempView("otherwise")
    first = table(*run(local_spark, tmp_path, sample=0.2))
    second = table(*run(local_spark, tmp_path, {"table": "otherwise"}, sample=0.2, num_nodes=3))
    ids = sorted(first.column("id").to_pylist())
    assert ids == sorted(second.column("id").to_pylist())
    assert 300 < len(ids) < 500


def test_a_limit_is_exact_and_takes_what_a_template_renders(local_spark: Any, tmp_path: Path) -> None:
    outcome, manifest = run(local_spark, tmp_path, limit="150", where="id >= 1000")
    assert manifest.rows(TRAIN) == 150
    assert min(table(outcome, manifest).column("id").to_pylist()) >= 1000
    _, whole = run(local_spark, tmp_path, limit="None", sample="")
    assert whole.rows(TRAIN) == ROWS


def test_decimals_become_long_or_double(local_spark: Any, tmp_path: Path) -> None:
    source = {
        "sql": """SELECT cast(id AS decimal(18,0)) AS whole, cast(id AS decimal(38,0)) AS large,
                         cast(id / 8 AS decimal(12,3)) AS price, array(cast(id AS decimal(5,1)), 2.5BD) AS pair FROM range(8)"""
    }
    outcome, manifest = run(local_spark, tmp_path, source)
    assert [(c.type, c.element) for c in manifest.columns] == [
        ("long", None),
        ("double", None),
        ("double", None),
        ("array", "double"),
    ]
    found = sorted(table(outcome, manifest).to_pylist(), key=lambda row: row["whole"])
    assert found[3] == {"whole": 3, "large": 3.0, "price": 0.375, "pair": [3.0, 2.5]}
    assert not any(isinstance(value, decimal.Decimal) for row in found for value in row.values())


def test_spark_ml_vectors_become_arrays_whether_dense_or_sparse(local_spark: Any, tmp_path: Path) -> None:
    from pyspark.ml.linalg import Vectors

    rows = [(0, Vectors.dense([1.0, 0.0, 2.0])), (1, Vectors.sparse(3, {1: 5.0})), (2, Vectors.dense([0.0, 0.0, 7.0]))]
    local_spark.createDataFrame(rows, ["id", "v"]).createOrReplaceTempView("vectors")
    outcome, manifest = run(local_spark, tmp_path, {"table": "vectors"}, num_nodes=1)
    column = manifest.column("v")
    assert column is not None
    assert (column.type, column.element, column.length, column.maximum) == ("array", "double", 3, 7.0)
    found = {row["id"]: row["v"] for row in table(outcome, manifest).to_pylist()}
    assert found == {0: [1.0, 0.0, 2.0], 1: [0.0, 5.0, 0.0], 2: [0.0, 0.0, 7.0]}


def test_a_timestamp_without_a_zone_is_read_as_utc(local_spark: Any, tmp_path: Path) -> None:
    outcome, manifest = run(
        local_spark, tmp_path, {"sql": "SELECT timestamp_ntz'2013-06-01 23:30:00' AS at FROM range(4)"}
    )
    found = table(outcome, manifest)
    assert found.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert found.column("at")[0].as_py() == dt.datetime(2013, 6, 1, 23, 30, tzinfo=dt.UTC)


REFUSED = {
    "arrays of differing lengths": (
        "SELECT if(id = 3, array(1, 2, 3), array(1, 2)) AS a FROM range(9)",
        {},
        "SDDP-205",
        "'a' have between 2 and 3",
    ),
    "empty arrays": ("SELECT cast(array() AS array<int>) AS a FROM range(9)", {}, "SDDP-205", "between 0 and 0"),
    "a null in an array": (
        "SELECT if(id = 3, array(1, null), array(1, 2)) AS a FROM range(9)",
        {},
        "SDDP-206",
        "'a' hold nulls in 1 rows",
    ),
    "arrays of text": ("SELECT array('a') AS a FROM range(9)", {}, "SDDP-205", "array<string>"),
    "a struct": ("SELECT struct(1 AS b) AS a FROM range(9)", {}, "SDDP-205", "struct<b:int>"),
    "bytes": ("SELECT cast('a' AS binary) AS a FROM range(9)", {}, "SDDP-205", "binary"),
    "an interval": ("SELECT interval '1' day AS a FROM range(9)", {}, "SDDP-205", "interval"),
    "a date beyond the year 9999": ("SELECT date'12013-01-01' AS d FROM range(9)", {}, "SDDP-210", "'d' holds a date"),
    "a timestamp beyond the year 9999": (
        "SELECT timestamp'290000-01-01' AS d FROM range(9)",
        {},
        "SDDP-210",
        "'d' holds a timestamp",
    ),
    "a condition with a syntax error": ("SELECT * FROM panel", {"where": "x >"}, "SDDP-203", "PARSE_SYNTAX_ERROR"),
    "an expression of an unknown column": ("SELECT * FROM panel", {"columns": {"a": "z + 1"}}, "SDDP-203", "`z`"),
    "a border that is no date": (
        "SELECT * FROM panel",
        {"validation": {"after": {"column": "ds", "value": "2013-13-45"}}},
        "SDDP-101",
        "'2013-13-45' for the column 'ds' of type date",
    ),
    "an encoder for a column that isn't kept": (
        "SELECT * FROM panel",
        {"columns": ["id", "x"], "encode": {"series": "index"}},
        "SDDP-204",
        "the column 'series' is not in what is kept",
    ),
    "an index for numbers": ("SELECT * FROM panel", {"encode": {"x": "index"}}, "SDDP-213", "'x'"),
    "fewer groups than ranks": (
        "SELECT * FROM panel",
        {"group_by": "flag", "num_nodes": 3},
        "SDDP-202",
        "2 groups for 3 ranks",
    ),
    "nulls in a group's key": (
        "SELECT if(id < 5, null, id) AS g, id FROM range(50)",
        {"group_by": ["g"]},
        "SDDP-206",
        "null in 5 rows",
    ),
    "a group by a column that isn't there": ("SELECT * FROM panel", {"group_by": "serie"}, "SDDP-204", "'serie'"),
    "nothing left by the condition": ("SELECT * FROM panel", {"where": "x < 0"}, "SDDP-201", "gave no rows"),
    "nothing left by the condition, in groups": (
        "SELECT * FROM panel",
        {"where": "x < 0", "group_by": "series"},
        "SDDP-201",
        "gave no rows",
    ),
    "fewer held out groups than ranks": (
        "SELECT * FROM panel",
        {"group_by": "series", "validation": 0.01, "num_nodes": 8},
        "SDDP-20",
        "validation",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_partitioned_is_refused_by_name(case: str, local_spark: Any, tmp_path: Path) -> None:
    sql, settings, code, words = REFUSED[case]
    error = refused(local_spark, tmp_path, {"sql": sql}, **settings)
    assert error.code.startswith(code)
    assert words in error.message


def sides(outcome: Outcome, manifest: Manifest, key: str = "id") -> dict[str, set[Any]]:
    return {split: set(table(outcome, manifest, split).column(key).to_pylist()) for split in manifest.shares}


def test_test_rows_are_no_validation_rows_and_the_same_in_every_run(local_spark: Any, tmp_path: Path) -> None:
    first = sides(*run(local_spark, tmp_path, validation=0.1, test=0.2))
    again = sides(*run(local_spark, tmp_path, validation=0.1, test=0.2, num_nodes=3, shuffle=False))
    assert first == again
    assert sum(map(len, first.values())) == ROWS
    assert 130 < len(first[VALIDATION]) < 270
    assert 320 < len(first[TEST]) < 480


def test_the_test_is_decided_first_and_validation_from_what_is_left(local_spark: Any, tmp_path: Path) -> None:
    after = {"after": {"column": "ds", "value": "2013-07-01"}}
    found = sides(*run(local_spark, tmp_path, validation={"column": "flag"}, test=after))
    assert found[TEST] == {i for i in range(ROWS) if i // 10 > 181}
    assert found[VALIDATION] == {i for i in range(ROWS) if i // 10 <= 181 and i % 10 == 3}


def test_whole_groups_are_held_out_by_a_fraction(local_spark: Any, tmp_path: Path) -> None:
    found = sides(*run(local_spark, tmp_path, group_by="series", validation=0.3, test=0.2), key="series")
    assert sum(map(len, found.values())) == len(set.union(*found.values()))
    again = sides(*run(local_spark, tmp_path, validation=0.3, test=0.2, group_by="series", num_nodes=1), key="series")
    assert again == found


def test_the_last_rows_of_each_group_are_held_out_the_test_s_behind_validation_s(
    local_spark: Any, tmp_path: Path
) -> None:
    outcome, manifest = run(
        local_spark,
        tmp_path,
        group_by="series",
        order_by=["ds", "id"],
        validation={"last_per_group": 3},
        test={"last_per_group": 2},
    )
    rows = {split: table(outcome, manifest, split).to_pylist() for split in manifest.shares}
    series: dict[str, list[tuple[int, str]]] = {}
    for split, found in rows.items():
        for row in found:
            series.setdefault(row["series"], []).append((row["id"], split))
    for members in series.values():
        splits = [split for _, split in sorted(members)]
        held = min(2, len(splits))
        assert splits[len(splits) - held :] == [TEST] * held
        assert splits[max(0, len(splits) - 5) : len(splits) - held] == [VALIDATION] * (min(5, len(splits)) - held)
        assert set(splits[: max(0, len(splits) - 5)]) <= {TRAIN}


def test_last_rows_are_counted_after_a_test_by_date(local_spark: Any, tmp_path: Path) -> None:
    after = {"after": {"column": "ds", "value": "2013-07-01"}}
    found = run(
        local_spark,
        tmp_path,
        group_by="series",
        order_by=["ds", "id"],
        test=after,
        validation={"last_per_group": 1},
        num_nodes=1,
    )
    held = table(*found, VALIDATION).to_pylist()
    assert max(Counter(row["series"] for row in held).values()) == 1
    assert all(row["id"] // 10 <= 181 for row in held)


def test_a_group_lies_in_one_rank_with_all_its_splits_and_in_order(local_spark: Any, tmp_path: Path) -> None:
    outcome, manifest = run(
        local_spark,
        tmp_path,
        group_by=["series"],
        order_by=["ds", "id"],
        num_nodes=3,
        files_per_rank=2,
        validation={"last_per_group": 2},
    )
    assert (manifest.group_by, manifest.order_by) == (("series",), ("ds", "id"))
    uri = outcome.values["manifest"]
    ranks: dict[str, set[int]] = {}
    for split, shares in manifest.shares.items():
        for rank, share in enumerate(shares):
            for index in {piece.file for piece in share}:
                file = manifest.files[index]
                assert file.split == split
                assert {p.row_group for p in share if p.file == index} == set(range(len(file.row_groups)))
                found = pq.ParquetFile(data_uri(uri, file).removeprefix("file://")).read().to_pylist()
                keys = [(row["series"], row["ds"], row["id"]) for row in found]
                assert keys == sorted(keys)
                for row in found:
                    ranks.setdefault(row["series"], set()).add(rank)
    assert all(len(places) == 1 for places in ranks.values())
    assert sorted(table(outcome, manifest).column("id").to_pylist()) == list(range(ROWS))


def test_encoders_are_equal_bit_for_bit_for_any_number_of_ranks(local_spark: Any, tmp_path: Path) -> None:
    sql = "SELECT id, concat('c', id % 17) AS c, 1e9 + rand(3) / 7 AS x, cast(id * 1000003 AS bigint) AS n FROM range(3000)"
    encode = {"c": "index", "x": "standardize", "n": "standardize"}
    found = []
    for settings in (
        {"num_nodes": 1},
        {"num_nodes": 3, "files_per_rank": 2},
        {"shuffle": False, "row_group_rows": 100},
    ):
        _, manifest = run(local_spark, tmp_path, {"sql": sql}, encode=encode, validation=0.2, **settings)
        found.append(manifest.encoders)
    assert found[0] == found[1] == found[2]
    assert found[0]["c"]["values"] == sorted(f"c{i}" for i in range(17))
    assert found[0]["x"]["std"] == pytest.approx(1 / 7 / 12**0.5, rel=0.05)


def test_a_column_without_any_value_is_told(local_spark: Any, tmp_path: Path) -> None:
    outcome, _ = run(local_spark, tmp_path, {"sql": "SELECT id, cast(null AS double) AS x FROM range(50)"})
    (line,) = [line for line in outcome.summary if "WARNING" in line]
    assert "the column 'x' is null in all rows" in line


def test_very_many_ranks_for_few_rows_are_refused_before_a_file_is_written(local_spark: Any, tmp_path: Path) -> None:
    error = refused(local_spark, tmp_path, {"sql": "SELECT id FROM range(50)"}, num_nodes=99_999)
    assert error.code == "SDDP-202"
    assert "50 rows for 99,999 ranks" in error.message
    assert list(tmp_path.rglob("*.parquet")) == []

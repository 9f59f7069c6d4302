"""One pure check for both times: with what is known while the DAG is parsed, and with everything when the task runs."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from airflow_provider_sparkddp.spec import checks, jobs, wire
from airflow_provider_sparkddp.spec.arguments import UNKNOWN
from airflow_provider_sparkddp.spec.jobs import CodeRef, Job
from tests.support.jobs import DEFAULTS
from tests.support.refusals import refused

DEEPSPEED = {"strategy": "deepspeed_stage_2", "accelerator": "cuda"}
AFTER = {"after": {"column": "ds", "value": "2013-11-01"}}
PARTITION = {**DEFAULTS[jobs.PARTITION], "source": {"table": "flights"}, "validation": 0.1}
TRAIN = {
    "partitions": "file:///m.json",
    "model": "my_models:Net",
    "features": ["a", "b"],
    "target": "y",
    "batch_size": 32,
}
EXPORT = {"model": "file:///m", "destination": "file:///models/a", "formats": ["safetensors"]}
VALIDATE = {"model": "file:///m", "data": "file:///m.json"}
WHOLE: dict[str, dict[str, Any]] = {
    jobs.PARTITION: PARTITION,
    jobs.TRAIN: TRAIN,
    jobs.EXPORT: EXPORT,
    jobs.VALIDATE: VALIDATE,
}
WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("partition", {"source": None}, "SDDP-101", "source is not set"),
    ("partition", {"source": {}}, "SDDP-101", "no keys"),
    ("partition", {"source": {"table": "a", "sql": "b"}}, "SDDP-101", "exactly one of"),
    ("partition", {"source": {"tabel": "a"}}, "SDDP-101", "exactly one of path, table, sql, callable"),
    ("partition", {"source": {"table": "a", "option": {}}}, "SDDP-101", "'option'"),
    ("partition", {"source": {"path": "s3://b/x"}}, "SDDP-101", "no format"),
    ("partition", {"source": {"path": "s3://b/x", "format": ""}}, "SDDP-101", "source['format']"),
    ("partition", {"source": {"callable": "module.fn"}}, "SDDP-101", "one colon"),
    ("partition", {"source": {"callable": "m:fn", "kwargs": [1]}}, "SDDP-101", "source['kwargs']"),
    ("partition", {"source": {"callable": "m:fn", "kwargs": {"a": {1}}}}, "SDDP-101", "not plain JSON"),
    ("partition", {"source": {"callable": "m:fn", "kwargs": {"a": float("nan")}}}, "SDDP-101", "not plain JSON"),
    ("partition", {"source": {"jdbc_conn_id": "db"}}, "SDDP-101", "exactly one of table and query"),
    ("partition", {"source": {"jdbc_conn_id": "db", "table": "t", "query": "q"}}, "SDDP-101", "exactly one of"),
    (
        "partition",
        {"source": {"jdbc_conn_id": "db", "table": "t", "lower_bound": 0}},
        "SDDP-101",
        "no partition_column",
    ),
    ("partition", {"source": {"jdbc_conn_id": "db", "table": "t", "password": "x"}}, "SDDP-101", "'password'"),
    (
        "partition",
        {
            "source": {
                "jdbc_conn_id": "db",
                "table": "t",
                "partition_column": "id",
                "lower_bound": 0,
                "upper_bound": 9,
                "num_partitions": 0,
            }
        },
        "SDDP-101",
        "source['num_partitions']=0",
    ),
    (
        "partition",
        {"source": {"jdbc_conn_id": "db", "table": "t", "fetch_size": "-1"}},
        "SDDP-101",
        "'-1' is too small",
    ),
    ("partition", {"source": {"sql": "  "}}, "SDDP-101", "source['sql'] is blank"),
    ("partition", {"source": {"format": "csv", "path": []}}, "SDDP-101", "an empty list"),
    ("partition", {"source": {"format": "csv", "path": "file:///x", "tolerate": ["all"]}}, "SDDP-101", "malformed"),
    ("partition", {"columns": {"a": 1}}, "SDDP-101", "name -> SQL expression"),
    ("partition", {"where": 7.5, "columns": [""]}, "SDDP-204", "the column ''"),
    ("partition", {"compare_with": {"a": 1}}, "SDDP-101", "compare_with has the keys 'a'"),
    ("partition", {"row_group_rows": 10**15}, "SDDP-101", "too large"),
    (
        "partition",
        {"validation": {"column": "v"}, "group_by": "v"},
        "SDDP-101",
        "group_by names 'v', which validation=",
    ),
    ("partition", {"test": {"column": "v"}, "encode": {"v": "index"}}, "SDDP-101", "encode names 'v', which test="),
    ("partition", {"source": {"format": "csv", "path": ["file:///a", ""]}}, "SDDP-101", "a path of source['path']"),
    ("partition", {"source": {"jdbc_conn_id": "db", "query": "DELETE FROM t"}}, "SDDP-101", "holds 'DELETE'"),
    ("partition", {"sample": 1.5}, "SDDP-101", "sample=1.5"),
    ("partition", {"limit": 0}, "SDDP-101", "limit=0"),
    ("partition", {"order_by": ["ds"]}, "SDDP-101", "without group_by"),
    ("partition", {"group_by": ["a", "a"]}, "SDDP-101", "repeats itself"),
    ("partition", {"group_by": ["a"], "shuffle": False}, "SDDP-101", "Leave one of the two out"),
    ("partition", {"validation": 0.6, "test": 0.4}, "SDDP-101", "nothing to train on"),
    ("partition", {"test": {"before": 1}}, "SDDP-101", "test has the keys 'before'"),
    ("partition", {"validation": {"last_per_group": 0}, "group_by": "g", "order_by": "t"}, "SDDP-101", "at least 1"),
    ("partition", {"encode": {"a": "one-hot"}}, "SDDP-101", "Allowed: index, standardize"),
    ("partition", {"compression": "gzip"}, "SDDP-101", "zstd, snappy"),
    ("partition", {"writer": "delta"}, "SDDP-101", "auto, spark, arrow"),
    ("partition", {"drift": {"schema": True}}, "SDDP-101", "compare_with names nothing"),
    ("partition", {"drift": {"mean": 1}, "compare_with": "file:///m.json"}, "SDDP-101", "max_mean_shift"),
    ("partition", {"retention": 0}, "SDDP-101", "retention=0"),
    ("partition", {"fingerprint": "v1"}, "SDDP-101", "reuse is not"),
    ("partition", {"files_per_rank": 0}, "SDDP-101", "files_per_rank=0"),
    ("partition", {"num_nodes": 0}, "SDDP-101", "num_nodes=0"),
    ("partition", {"devices": True}, "SDDP-101", "devices=True"),
    ("partition", {"seed": -1}, "SDDP-101", "seed=-1"),
    ("partition", {"columns": "a"}, "SDDP-101", "a list of names"),
    ("partition", {"columns": ["a", "b", "a"]}, "SDDP-204", "columns has the column 'a': the same name twice"),
    ("partition", {"columns": ["Id", "id"]}, "SDDP-204", "the columns 'Id', 'id': the same name twice"),
    ("partition", {"columns": ["a.b", "x", " c"]}, "SDDP-204", "the columns 'a.b', ' c'"),
    ("partition", {"columns": {"sparkddp_x": "x"}}, "SDDP-204", "'sparkddp_x'"),
    (
        "partition",
        {"columns": ["Id"], "encode": {"id": "index", "z": "index"}},
        "SDDP-204",
        "'id', 'z' are not in what is kept",
    ),
    ("partition", {"columns": ["Id"], "encode": {"id": "index"}}, "SDDP-204", "Did you mean 'Id'?"),
    ("partition", {"drift": {"max_mean_shift": -1}, "compare_with": "file:///m.json"}, "SDDP-101", "is negative"),
    ("partition", {"compare_with": "runs/m.json"}, "SDDP-107", "compare_with='runs/m.json'"),
    ("partition", {"num_nodes": 10**6}, "SDDP-101", "more than 100,000 files"),
    ("partition", {"files_per_rank": 4, "shuffle": False}, "SDDP-101", "files_per_rank=4 is set"),
    ("partition", {"validation": {"column": "held"}, "test": {"column": "held"}}, "SDDP-101", "leaves no row"),
    ("partition", {"validation": AFTER, "test": AFTER}, "SDDP-101", "leaves no row"),
    ("partition", {"validation": {"after": {"column": "ds", "value": None}}}, "SDDP-101", "['value'] is None"),
    ("partition", {"source": {"sql": "/* old */ drop TABLE x"}}, "SDDP-101", "it is no query"),
    (
        "partition",
        {"source": {"format": "parquet", "path": "file:///x", "schema": "a INT"}},
        "SDDP-101",
        "tell their schema",
    ),
    (
        "partition",
        {
            "source": {
                "jdbc_conn_id": "db",
                "table": "t",
                "partition_column": "id",
                "lower_bound": 9,
                "upper_bound": 1,
                "num_partitions": 2,
            }
        },
        "SDDP-101",
        "source['lower_bound']=9 is not less",
    ),
    ("partition", {"validation": 1.0}, "SDDP-101", "between 0 and 1"),
    ("partition", {"validation": "0"}, "SDDP-101", "between 0 and 1"),
    ("partition", {"validation": True}, "SDDP-101", "validation=True"),
    ("partition", {"validation": {}}, "SDDP-101", "none"),
    ("partition", {"validation": {"before": 1}}, "SDDP-101", "'before'"),
    ("partition", {"validation": {"column": ["a"]}}, "SDDP-101", "validation['column']"),
    ("partition", {"validation": {"after": {"column": "ds"}}}, "SDDP-101", "'column' and 'value'"),
    ("partition", {"validation": {"last_per_group": 12}}, "SDDP-101", "group_by is not set"),
    (
        "partition",
        {"validation": {"after": {"column": "ds", "value": datetime.date(2013, 11, 1)}}},
        "SDDP-101",
        "write a date as text",
    ),
    ("partition", {"run_dir": "/shared"}, "SDDP-107", "run_dir='/shared'"),
    ("partition", {"executors_timeout": -1}, "SDDP-101", "executors_timeout"),
    ("train", {"model": None}, "SDDP-101", "model is not set"),
    ("train", {"model": "my_models.Net"}, "SDDP-101", "'package.module:Name'"),
    ("train", {"model": "my-models:Net"}, "SDDP-101", "not an import path"),
    ("train", {"features": []}, "SDDP-101", "features is empty"),
    ("train", {"features": ["a", "a"]}, "SDDP-204", "'a' twice"),
    ("train", {"features": ["a", "y"]}, "SDDP-204", "also a feature"),
    ("train", {"batch_size": "0"}, "SDDP-101", "batch_size='0'"),
    ("train", {"alias": "_hidden"}, "SDDP-101", "alias='_hidden'"),
    ("train", {"alias": "a/b"}, "SDDP-101", "alias='a/b'"),
    ("train", {"model_kwargs": {"loss": object}}, "SDDP-101", "$import"),
    ("train", {"model_kwargs": {"a": [{"$import": "torch.nn.ReLU"}]}}, "SDDP-101", "model_kwargs['a'][0]['$import']"),
    ("train", {"trainer": {"max_epoch": 1}}, "SDDP-103", "'max_epochs'"),
    ("train", {"model_kwargs": {"loss": {"$import": "a:B", "kw": {}}}}, "SDDP-101", "Did you mean 'kwargs'?"),
    ("train", {"model_kwargs": {"loss": {"$imprt": "a:B"}}}, "SDDP-101", "Did you mean '$import'?"),
    ("train", {"model_kwargs": {"loss": {"$import": "a:B", "kwargs": [1]}}}, "SDDP-101", "a dict"),
    ("train", {"trainer": {"callbacks": [{"import": "a:B"}]}}, "SDDP-101", "Write each callback as"),
    ("train", {"trainer": {"callbacks": "a:B"}}, "SDDP-101", "Write each callback as"),
    ("train", {"trainer": {"callbacks": [{"$import": "a:B", "kwarg": {}}]}}, "SDDP-101", "Did you mean 'kwargs'?"),
    ("train", {"partitions": {}}, "SDDP-101", "partitions is not set"),
    ("partition", {"columns": []}, "SDDP-101", "columns is empty"),
    ("partition", {"seed": 2**32}, "SDDP-101", "too large"),
    ("validate", {"metrics": {"mae": {"max_ratio": -1, "baseline": "a"}}}, "SDDP-101", "can never pass"),
    ("train", {"trainer": {"callbacks": [print]}}, "SDDP-101", "trainer is not plain JSON"),
    ("train", {"early_stopping": {"patience": 2}}, "SDDP-101", "early_stopping has no monitor"),
    ("train", {"early_stopping": {"monitor": "val_mae", "patiense": 2}}, "SDDP-101", "Did you mean 'patience'?"),
    ("train", {"early_stopping": {"monitor": "val_mae", "patience": "two"}}, "SDDP-101", "a whole number"),
    ("train", {"best_weights": {"monitor": "val_mae", "mode": "lowest"}}, "SDDP-101", "Allowed: min, max"),
    ("train", {"best_weights": {"monitor": "val_mae", "patience": 2}}, "SDDP-101", "Allowed: monitor, mode"),
    ("train", {"best_weights": ["val_mae"]}, "SDDP-101", "a name or a dict"),
    ("train", {"best_weights": "v", "trainer": DEEPSPEED}, "SDDP-101", "its own engine"),
    ("train", {"on_nan": "skip", "trainer": DEEPSPEED}, "SDDP-101", "on_nan='skip'"),
    (
        "train",
        {"trainer": {"callbacks": {"$import": "lightning.pytorch.callbacks:ModelCheckpoint", "kwargs": {}}}},
        "SDDP-102",
        "Set best_weights",
    ),
    ("train", {"on_nan": "stopp"}, "SDDP-101", "Did you mean 'stop'?"),
    ("train", {"max_restarts": 1}, "SDDP-102", "max_restarts=1"),
    ("train", {"threads_per_rank": 0}, "SDDP-101", "threads_per_rank=0"),
    ("export", {"destination": "models/a"}, "SDDP-107", "destination='models/a'"),
    ("export", {"formats": []}, "SDDP-101", "formats is empty"),
    ("export", {"formats": ["onnx"]}, "SDDP-102", "'onnx'"),
    ("export", {"trusted_modules": "my_models"}, "SDDP-101", "a list of names"),
    ("validate", {"data": None}, "SDDP-101", "data is not set"),
    ("validate", {"metrics": {"rmsee": {"max": 1}}}, "SDDP-101", "Did you mean 'rmse'?"),
    ("validate", {"metrics": {"mae": 30}}, "SDDP-101", "metrics['mae']=30"),
    ("validate", {"metrics": {"mae": {}}}, "SDDP-101", "no bound"),
    ("validate", {"metrics": {"mae": {"maximum": 1}}}, "SDDP-101", "'maximum'"),
    ("validate", {"metrics": {"mae": {"max": "high"}}}, "SDDP-101", "metrics['mae']['max']='high'"),
    ("validate", {"metrics": {"mae": {"max_ratio": 0.9}}}, "SDDP-101", "belong together"),
    ("validate", {"metrics": {"mae": {"max": 1, "offset": 2}}}, "SDDP-101", "belong together"),
    ("validate", {"metrics": {"r2": {"max_ratio": 1, "baseline": "a"}}}, "SDDP-101", "Use 'min'"),
    (
        "validate",
        {"metrics": {"mae": {"max_ratio": 1, "baseline": "a", "offset": "median"}}},
        "SDDP-101",
        "train_median",
    ),
]


@pytest.mark.parametrize("kind", WHOLE)
def test_whole_arguments_pass_and_every_declared_one_is_answered(kind: str) -> None:
    assert set(jobs.check(kind, WHOLE[kind])) == set(jobs.ARGUMENTS[kind])


@pytest.mark.parametrize(("kind", "change", "code", "told"), WRONG, ids=lambda value: str(value)[:60])
def test_a_wrong_value_is_refused_when_it_is_known(kind: str, change: dict[str, Any], code: str, told: str) -> None:
    with refused(code, told):
        jobs.check(kind, WHOLE[kind] | change)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in WHOLE for name in WHOLE[kind]])
def test_a_value_that_is_known_later_passes_now(kind: str, name: str) -> None:
    assert name not in jobs.check(kind, WHOLE[kind] | {name: UNKNOWN})


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in WHOLE for name in WHOLE[kind]])
def test_the_known_values_are_checked_although_another_is_known_later(kind: str, name: str) -> None:
    with refused("SDDP-107", "run_dir"):
        jobs.check(kind, WHOLE[kind] | {name: UNKNOWN, "run_dir": "relative"})


def test_what_is_known_later_inside_of_a_value_passes_now() -> None:
    source = {"callable": "m:fn", "kwargs": {"day": UNKNOWN}}
    assert jobs.check("partition", PARTITION | {"source": source})["source"] == source
    jobs.check("partition", PARTITION | {"validation": {"after": UNKNOWN}})
    jobs.check("partition", PARTITION | {"validation": {"after": UNKNOWN}, "test": {"after": UNKNOWN}})
    jobs.check("partition", PARTITION | {"validation": AFTER, "test": {"after": {"column": "ds", "value": UNKNOWN}}})
    jobs.check("partition", PARTITION | {"validation": {"after": {"column": "ds", "value": UNKNOWN}}})
    jobs.check("train", TRAIN | {"model_kwargs": {"rate": UNKNOWN}, "trainer": {"max_epochs": UNKNOWN}})
    jobs.check("validate", VALIDATE | {"metrics": {"mae": {"max": UNKNOWN}, "rmse": UNKNOWN}})


def test_rendered_texts_become_values_of_the_declared_types() -> None:
    rendered = {
        "features": "['a', 'b']",
        "batch_size": "64",
        "num_nodes": "4",
        "model_kwargs": "{'rate': 0.1}",
        "trainer": "{'max_epochs': '3'}",
        "executors_timeout": "1e1",
        "max_restarts": "0",
    }
    checked = jobs.check("train", TRAIN | rendered)
    assert checked["features"] == ["a", "b"]
    assert (checked["batch_size"], checked["num_nodes"], checked["executors_timeout"]) == (64, 4, 10.0)
    assert (checked["model_kwargs"], checked["trainer"]) == ({"rate": 0.1}, {"max_epochs": 3})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (None, None),
        ("0.25", 0.25),
        ({"column": "held_out"}, {"column": "held_out"}),
        ("{'column': 'held_out'}", {"column": "held_out"}),
        ({"after": {"column": "ds", "value": "2013"}}, {"after": {"column": "ds", "value": "2013"}}),
        ({"after": "{'column': 'ds', 'value': 3}"}, {"after": {"column": "ds", "value": 3}}),
    ],
)
def test_validation_is_a_share_a_border_or_a_column(written: Any, meant: Any) -> None:
    assert jobs.check("partition", PARTITION | {"validation": written})["validation"] == meant


def test_gates_become_numbers() -> None:
    gate = {"max_ratio": "0.98", "baseline": "dep_delay", "offset": "train_median"}
    checked = jobs.check("validate", VALIDATE | {"metrics": {"mae": gate, "rmse": {"max": "30"}}})
    assert checked["metrics"] == {"mae": gate | {"max_ratio": 0.98}, "rmse": {"max": 30.0}}


def test_the_check_changes_nothing_that_it_is_given() -> None:
    given = TRAIN | {"trainer": {"max_epochs": "3"}}
    jobs.check("train", given)
    assert given["trainer"] == {"max_epochs": "3"}


def test_every_kind_of_job_has_its_arguments_and_its_check() -> None:
    assert set(jobs.ARGUMENTS) == set(checks.CHECKS) == set(WHOLE)


def test_a_job_survives_the_way_to_the_cluster() -> None:
    code = (CodeRef("file:///code/a.zip", "0" * 64, ("a", "b")),)
    job = Job(
        "train", "n1", "file:///run/train/unmapped/1-n1", "dag.train[3]", code, {"features": ["a"]}, "dag/r/train/3"
    )
    assert Job.from_text(job.to_text(), "job.json") == job


def test_a_job_of_before_owners_is_nobody_s() -> None:
    body = wire.unpack(
        "job", Job("train", "n1", "file:///run", "dag.train", (), {}, "dag/r/train/3").to_text(), "job.json"
    )
    del body["owner"]
    assert Job.from_text(wire.pack("job", body), "job.json").owner == ""


@pytest.mark.parametrize(
    "source",
    [{"sql": "SELECT 1"}, {"callable": "m:fn"}, {"jdbc_conn_id": "db", "table": "t"}],
    ids=lambda s: next(iter(s)),
)
def test_reuse_of_a_source_that_tells_no_state_needs_the_users_word_for_it(source: dict[str, Any]) -> None:
    given = PARTITION | {"source": source, "reuse": True}
    with refused("SDDP-101", "reuse=True", repr(next(iter(source))), "fingerprint="):
        jobs.check("partition", given)
    for later in (UNKNOWN, "2026-11-30"):
        jobs.check("partition", given | {"fingerprint": later})
    jobs.check("partition", given | {"reuse": UNKNOWN})
    jobs.check("partition", given | {"reuse": False})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'insert into' AS a, `merge into`, update, delete FROM t -- insert into x",
        "\ufeffselect 1",
        "SELECT * FROM (SELECT 1) AS t WHERE note = 'it''s ) delete from'",
        "-- flights\nselect 1",
        "/* of\nold */ WITH a AS (SELECT 1) SELECT * FROM a",
        "(SELECT 1) UNION (SELECT 2)",
        "TABLE x",
        "values (1)",
    ],
)
def test_queries_are_taken_as_such(sql: str) -> None:
    assert jobs.check("partition", PARTITION | {"source": {"sql": sql}})["source"] == {"sql": sql}


def test_what_is_split_grouped_or_sorted_by_may_be_encoded_without_standing_in_columns() -> None:
    given = {"columns": ["x"], "encode": {"who": "index"}, "group_by": "who"}
    assert jobs.check("partition", PARTITION | {"test": None, "order_by": None} | given)["encode"] == {"who": "index"}


def test_splits_that_leave_rows_to_each_other_are_taken() -> None:
    later = {"after": {"column": "ds", "value": "2013-12-01"}}
    assert jobs.check("partition", PARTITION | {"validation": AFTER, "test": later})["test"] == later


@pytest.mark.parametrize(
    "sql",
    [
        "WITH a AS (SELECT 1 x) INSERT OVERWRITE DIRECTORY 'file:///x' USING parquet SELECT * FROM a",
        "FROM (SELECT 1 AS x) INSERT INTO t SELECT x",
        "WITH a AS (SELECT 1) DELETE FROM t",
        "WITH a AS (SELECT 1) UPDATE s.t AS u SET x = 1",
        "WITH a AS (SELECT 1) MERGE INTO t USING a ON true WHEN MATCHED THEN DELETE",
        "-- 'quote\nDROP TABLE x",
        "-- only",
    ],
)
def test_sql_that_writes_is_no_source(sql: str) -> None:
    with refused("SDDP-101", "source['sql'] holds"):
        jobs.check("partition", PARTITION | {"source": {"sql": sql}})


@pytest.mark.parametrize("empty", ["", "None", "  "])
def test_an_empty_field_of_the_trigger_form_is_not_set(empty: str) -> None:
    """The default where there is one, and otherwise nothing."""
    names = [name for name in jobs.ARGUMENTS["partition"] if name not in ("source", "storage_conn_id")]
    source = {"format": "csv", "path": "file:///x", "schema": empty}
    checked = jobs.check("partition", {"source": source} | dict.fromkeys(names, empty))
    known = jobs.defaults("partition") | {"validation": None}
    assert {name: checked[name] for name in names} == {name: known.get(name) for name in names}

"""The validation job: what the task says, prints and refuses."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch

from airflow_provider_sparkddp.runtime.jobs import validate
from airflow_provider_sparkddp.runtime.models import bundle
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.storage import leases
from tests.support import partitions, stored
from tests.support.refusals import refused

X = torch.tensor([[1.0, 2.0], [-3.0, 0.5]])
TABLE: dict[str, list[Any]] = {
    "a": [1.0, 2.0, 3.0, 4.0],
    "b": [0.5, 0.5, 0.5, 0.5],
    "y": [1.0, 2.0, 3.0, 4.0],
    "guess": [1.5, 2.5, 3.5, 4.5],
    "words": ["p", "q", "r", "s"],
    "gaps": [1.0, None, 3.0, 4.0],
}


def wanted() -> None:
    """Nobody killed the task."""


def run(
    tmp_path: Path, table: Any = None, validation: Any = None, test: Any = (), encode: Any = None, **changes: Any
) -> Any:
    if not (tmp_path / "line").exists():
        stored.store(tmp_path / "line", sample=X)
    rows = table or TABLE
    held_out = [rows] if validation is None else validation
    data = partitions.write(tmp_path / "run", [rows], held_out, test=test, encode=encode)
    settings = {
        "model": (tmp_path / "line").as_uri(),
        "data": data,
        "trusted_modules": [stored.ZOO],
        "metrics": None,
        "alias": None,
    }
    return validate.run(None, Job("validate", "n", tmp_path.as_uri(), "dag.task", (), {**settings, **changes}), wanted)


def test_a_pass_gives_the_verdict_with_its_figures(tmp_path: Path) -> None:
    gate = {"max_ratio": 1e9, "baseline": "guess"}
    outcome = run(tmp_path, metrics={"mae": gate, "rmse": {"max": 1e9}})
    values = outcome.values
    assert (values["verdict"], values["alias"], values["rows"]) == ("passed", "line", 4)
    assert values["metrics"]["mae"]["baseline"] == pytest.approx(0.5)
    assert all(check["passed"] for check in values["checks"])
    text = "\n".join(outcome.summary)
    assert values["split"] == "validation"
    for words in (
        "held-out rows   4 of the validation split",
        "alias           line",
        "verdict         PASSED",
        "mae <= 1e+09",
    ):
        assert words in text


def test_a_failure_names_each_check_that_failed_and_no_other(tmp_path: Path) -> None:
    with pytest.raises(SparkDDPError) as caught:
        run(tmp_path, metrics={"mae": {"max": 0}, "rmse": {"max": 1e9}}, alias="delay")
    error = caught.value
    assert error.code == "SDDP-505"
    assert not error.retry, "the same model fails again"
    assert "model 'line' failed on the 4 rows of the validation split: " in error.message
    assert "alias ('line', asked for 'delay')" in error.message
    assert "mae <= 0 (" in error.message
    assert "rmse" not in error.message and "parity" not in error.message
    failed = [check["name"] for check in error.details["checks"] if not check["passed"]]
    assert failed == ["alias", "mae <= 0"]
    assert any("FAILED" in line for line in error.details["summary"])


def test_the_test_split_judges_where_there_is_one(tmp_path: Path) -> None:
    test = {name: values[:2] for name, values in TABLE.items()}
    outcome = run(tmp_path, test=[test], metrics={"mae": {"max_ratio": 1e9, "baseline": "guess"}})
    assert (outcome.values["split"], outcome.values["rows"]) == ("test", 2)
    assert "held-out rows   2 of the test split" in outcome.summary


def test_the_test_split_alone_is_enough_and_a_failure_names_it(tmp_path: Path) -> None:
    with refused("SDDP-505", "failed on the 4 rows of the test split: mae <= 0 ("):
        run(tmp_path, validation=[], test=[TABLE], metrics={"mae": {"max": 0}})


def test_data_without_held_out_rows_is_refused(tmp_path: Path) -> None:
    with refused("SDDP-202", "holds no test and no validation rows", "test=0.1"):
        run(tmp_path, validation=[])


def test_the_data_are_leased_while_they_are_read_and_not_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, read = [], validate.read_manifest

    def reads(uri: str) -> Any:
        seen.extend(leases.readers(uri, time.time()))
        return read(uri)

    monkeypatch.setattr(validate, "read_manifest", reads)
    run(tmp_path)
    assert seen == ["dag.task"]
    assert leases.readers((tmp_path / "run" / "manifest.json").as_uri(), time.time()) == []


def test_data_that_are_being_removed_are_refused(tmp_path: Path) -> None:
    data = partitions.write(tmp_path / "going", [TABLE], [TABLE])
    leases.announce(data, "r1", "dag.partition", time.time())
    with refused("SDDP-208", "is being removed by retention (dag.partition)"):
        run(tmp_path, data=data)


def test_a_missing_manifest_is_refused(tmp_path: Path) -> None:
    with refused("SDDP-208", "nowhere/manifest.json does not exist"):
        run(tmp_path, data=(tmp_path / "nowhere" / "manifest.json").as_uri())


@pytest.mark.parametrize(
    ("baseline", "code", "text"),
    [
        ("gues", "SDDP-204", "metrics['mae'] names 'gues'"),
        ("words", "SDDP-205", "'words' is of type string"),
        ("gaps", "SDDP-206", "'gaps' holds"),
    ],
    ids=["missing", "text", "gaps"],
)
def test_a_baseline_that_gives_no_figure_is_refused_by_name(
    tmp_path: Path, baseline: str, code: str, text: str
) -> None:
    with refused(code, text):
        run(tmp_path, metrics={"mae": {"max_ratio": 1.0, "baseline": baseline}})


def test_a_baseline_is_a_raw_number_though_it_is_encoded_as_a_feature(tmp_path: Path) -> None:
    values = run(
        tmp_path,
        metrics={"mae": {"max_ratio": 1e9, "baseline": "guess"}},
        encode={"guess": "standardize", "y": "standardize", "words": "index"},
    ).values
    assert values["metrics"]["mae"]["baseline"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("baseline", "text"), [("words", "'words' is of type string"), ("pair", "'pair' is an array of 2 numbers")]
)
def test_a_baseline_that_only_an_encoder_makes_a_number_of_is_refused(tmp_path: Path, baseline: str, text: str) -> None:
    table = {**TABLE, "pair": [[1.0, 2.0]] * 4}
    gate = {"max_ratio": 1.0, "baseline": baseline}
    with refused("SDDP-205", "metrics['mae']", text):
        run(tmp_path, table, metrics={"mae": gate}, encode={"words": "index"})


def test_the_features_go_through_the_encoders_of_the_model_and_not_of_the_data(tmp_path: Path) -> None:
    encoders = {"words": {"kind": "index", "values": ["p", "q"]}}
    features = [bundle.ColumnFacts("a", "double"), bundle.ColumnFacts("words", "string")]
    stored.store(tmp_path / "line", sample=X, features=features, encoders=encoders)
    assert run(tmp_path).values["verdict"] == "passed"


def test_data_without_a_feature_of_the_model_is_refused(tmp_path: Path) -> None:
    with refused("SDDP-204", "features names 'b'", "they hold: a, y, guess"):
        run(tmp_path, {name: TABLE[name] for name in ("a", "y", "guess")})


def test_a_model_of_another_class_than_the_dag_named_is_refused(tmp_path: Path) -> None:
    with refused("SDDP-502", f"{stored.ZOO}:Line"):
        run(tmp_path, trusted_modules=["my_models"])

"""Predicting raw rows: texts for an index, unscaled numbers for a standardised feature, lists for an array."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from airflow_provider_sparkddp.runtime.models import LoadedModel, bundle, load_model
from airflow_provider_sparkddp.runtime.models.export import export
from airflow_provider_sparkddp.runtime.models.predict import inputs
from airflow_provider_sparkddp.spec import wire
from tests.support import stored
from tests.support.refusals import refused

FEATURES = (
    bundle.ColumnFacts("city", "string"),
    bundle.ColumnFacts("id", "long"),
    bundle.ColumnFacts("pair", "array", 2),
)
ENCODERS = {
    "city": {"kind": "index", "values": ["Bern", "Rom"]},
    "id": {"kind": "standardize", "mean": 2.0**40, "std": 2.0, "rows": 9},
}
ROWS = {"pair": [[1, 2], [3, 4], [5, 6]], "city": ["Rom", "Oslo", None], "id": [2**40, 2**40 + 2, 2**40 - 4]}
X = [[2, 0, 1, 2], [0, 1, 3, 4], [0, -2, 5, 6]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder = tmp_path_factory.mktemp("raw")
    stored.store(folder, "Echo", features=FEATURES, encoders=ENCODERS)
    return load_model(folder, [stored.ZOO])


def seen(model: LoadedModel, rows: Any) -> list[list[float]]:
    """What the module was given."""
    result = model.predict(rows)
    return (pa.Table.from_pandas(result) if isinstance(result, pd.DataFrame) else result)["line"].to_pylist()


FIXED = pa.FixedSizeListArray.from_arrays(pa.array([9, 9, 1, 2, 3, 4, 5, 6]), 2).slice(1)


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        pa.table(ROWS),
        pa.table({**ROWS, "pair": FIXED}),
        pa.table({**ROWS, "pair": pa.array(ROWS["pair"], pa.large_list(pa.float32()))}),
        pa.table({**ROWS, "city": pa.array(ROWS["city"]).dictionary_encode()}),
        {**ROWS, "pair": np.array(ROWS["pair"])},
        {**ROWS, "pair": [np.array(pair) for pair in ROWS["pair"]]},
        {**ROWS, "id": np.array(ROWS["id"]), "city": np.array(ROWS["city"], dtype=object)},
        {**ROWS, "id": np.array(ROWS["id"], dtype=float)},
        pd.DataFrame(ROWS),
        pd.DataFrame({**ROWS, "pair": [np.array(pair) for pair in ROWS["pair"]]}),
        pd.DataFrame({**ROWS, "city": pd.Categorical(ROWS["city"])}),
        pd.DataFrame({**ROWS, "city": pd.array(ROWS["city"], dtype="string")}),
        [dict(zip(ROWS, values, strict=True)) for values in zip(*ROWS.values(), strict=True)],
        [
            {**dict(zip(ROWS, values, strict=True)), "pair": np.array(values[0])}
            for values in zip(*ROWS.values(), strict=True)
        ],
    ],
    ids=[
        "dict",
        "table",
        "sliced fixed-size lists",
        "large lists",
        "dictionary",
        "two-dimensional numpy",
        "numpy rows",
        "numpy columns",
        "standardised doubles",
        "frame",
        "frame of numpy rows",
        "frame with a category",
        "frame with strings",
        "list of dicts",
        "list of dicts with numpy rows",
    ],
)
def test_raw_rows_reach_the_model_encoded(model: LoadedModel, rows: Any) -> None:
    assert seen(model, rows) == X


def test_a_slice_is_encoded_as_it_is(model: LoadedModel) -> None:
    for start in range(3):
        assert seen(model, pa.table(ROWS).slice(start)) == X[start:]


def test_a_column_without_any_text_is_unknown(model: LoadedModel) -> None:
    assert seen(model, {**ROWS, "city": [None] * 3}) == [[0, *row[1:]] for row in X]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"city": [1, 2, 3]}, "feature 'city' is of type int64; the model knows it by its texts"),
        ({"city": [b"Rom", b"Bern", b""]}, "feature 'city' is of type binary"),
        ({"city": [["Rom"], ["Rom"], ["Rom"]]}, "feature 'city' is of type list"),
        ({"id": ["1", "2", "3"]}, "feature 'id' is of type string"),
        ({"id": [1, None, 3]}, "feature 'id' holds 1 nulls"),
        ({"id": [1.0, float("nan"), 3.0]}, "feature 'id' holds 1 nulls, NaN or infinities"),
        ({"id": [1e300, 1.0, 2.0]}, "feature 'id' holds a number too large"),
        ({"id": [[1], [2], [3]]}, "feature 'id' is of type list"),
        ({"pair": [1.0, 2.0, 3.0]}, "feature 'pair' is of type double, not of lists"),
        ({"pair": ["ab", "cd", "ef"]}, "feature 'pair' is of type string, not of lists"),
        ({"pair": [[1], [2], [3]]}, "feature 'pair' holds a list of 1 numbers; the model takes 2"),
        ({"pair": [[1, 2], [3], [4, 5]]}, "a list of 1 numbers"),
        ({"pair": [[1, 2], [3, 4, 5], [4, 5]]}, "a list of 3 numbers"),
        ({"pair": [[], [], []]}, "a list of 0 numbers"),
        ({"pair": np.zeros((3, 5))}, "a list of 5 numbers"),
        ({"pair": [[1, 2], None, [4, 5]]}, "feature 'pair' holds 1 nulls instead of lists"),
        ({"pair": [None, None, None]}, "feature 'pair' is of type null, not of lists"),
        ({"pair": [[1, 2], [3, None], [4, 5]]}, "feature 'pair' holds 1 nulls, NaN or infinities"),
        ({"pair": [[1, 2], [3, float("inf")], [4, 5]]}, "feature 'pair' holds 1 nulls, NaN or infinities"),
        ({"pair": [[1, 2], [3, 2**24 + 1], [4, 5]]}, "feature 'pair' holds an integer beyond 16777216"),
        ({"pair": [[1, 2], [3, 1e300], [4, 5]]}, "feature 'pair' holds a number too large"),
        ({"pair": [["a", "b"]] * 3}, "feature 'pair' is of type string"),
        ({"pair": [[[1, 2]], [[3, 4]], [[5, 6]]]}, "a list of 1 numbers"),
    ],
    ids=str,
)
def test_what_the_model_cannot_take_is_refused_by_name(model: LoadedModel, change: Any, text: str) -> None:
    with refused("SDDP-504", text):
        model.predict({**ROWS, **change})


def test_the_null_of_another_slice_is_none_of_ours(model: LoadedModel) -> None:
    rows = pa.table({**ROWS, "pair": [None, [3, 4], [5, 6]], "id": [None, *ROWS["id"][1:]]})
    assert seen(model, rows.slice(1)) == X[1:]


def test_no_rows_give_no_predictions(model: LoadedModel) -> None:
    assert model.predict({"city": [], "id": [], "pair": []}).num_rows == 0


def test_an_export_keeps_encoders_and_lengths(model: LoadedModel, tmp_path: Path) -> None:
    stored.store(tmp_path / "trained", "Echo", features=FEATURES, encoders=ENCODERS)
    export((tmp_path / "trained").as_uri(), (tmp_path / "exported").as_uri(), [stored.ZOO], lambda: None)
    exported = load_model(tmp_path / "exported", [stored.ZOO])
    assert exported.description.features == FEATURES
    assert exported.description.encoders == ENCODERS
    assert seen(exported, ROWS) == X


def test_a_description_from_before_encoders_loads() -> None:
    body = asdict(stored.description())
    del body["encoders"]
    for column in (*body["features"], body["target"]):
        del column["length"]
    description = bundle.ModelDescription.from_text(wire.pack("model", body), "here")
    assert description == stored.description()
    assert (description.encoders, description.target.length) == ({}, None)


def test_a_large_integer_is_standardised_before_it_is_rounded(model: LoadedModel) -> None:
    x = inputs(pa.table(ROWS), FEATURES, ENCODERS)
    assert x[:, 1].tolist() == [0, 1, -2]

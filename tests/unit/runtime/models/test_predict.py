"""Rows in, one column out: by name, in order, and nothing guessed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from airflow_provider_sparkddp.runtime.models import LoadedModel, load_model
from airflow_provider_sparkddp.runtime.models.predict import BATCH, forward
from tests.support import stored, zoo
from tests.support.refusals import refused

ROWS = {"c": [3.0, 6.0], "extra": ["x", "y"], "a": [1.0, 4.0], "b": [2.0, 5.0]}
EXPECTED = [123.0, 456.0]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """Reads its three features in the order a, b, c as digits of a number."""
    return loaded(tmp_path_factory.mktemp("digits"), "Digits", features=("a", "b", "c"))


def loaded(folder: Path, model: str, kwargs: Any = None, features: Any = ("a", "b"), **more: Any) -> LoadedModel:
    stored.store(folder, model, kwargs, features=features, **more)
    return load_model(folder, [stored.ZOO])


def column(result: Any) -> list[Any]:
    assert list(result.column_names if isinstance(result, pa.Table) else result.columns) == ["line"]
    return list(result["line"].to_pylist() if isinstance(result, pa.Table) else result["line"])


@pytest.mark.parametrize(
    "rows",
    [
        pa.table(ROWS),
        pa.RecordBatch.from_pydict(ROWS),
        pd.DataFrame(ROWS),
        ROWS,
        {name: np.asarray(values) for name, values in ROWS.items()},
        [dict(zip(ROWS, values, strict=True)) for values in zip(*ROWS.values(), strict=True)],
        pa.concat_tables([pa.table(ROWS).slice(0, 1), pa.table(ROWS).slice(1, 1)]),
    ],
    ids=["table", "record batch", "pandas", "dict of lists", "dict of arrays", "list of dicts", "table in chunks"],
)
def test_inputs_go_by_name_and_the_column_bears_the_alias(digits: LoadedModel, rows: Any) -> None:
    result = digits.predict(rows)
    assert column(result) == EXPECTED
    assert isinstance(result, pd.DataFrame if isinstance(rows, pd.DataFrame) else pa.Table)


def test_the_columns_may_stand_in_any_order(digits: LoadedModel) -> None:
    for names in (["a", "b", "c"], ["c", "b", "a"], ["b", "extra", "c", "a"]):
        assert column(digits.predict(pa.table(ROWS).select(names))) == EXPECTED


def test_a_slice_of_a_table_is_predicted_as_it_is(digits: LoadedModel) -> None:
    assert column(digits.predict(pa.table(ROWS).slice(1))) == EXPECTED[1:]


def test_the_index_of_a_frame_is_kept(digits: LoadedModel) -> None:
    frame = pd.DataFrame(ROWS, index=pd.Index(["late", "early"], name="flight"))
    result = digits.predict(frame)
    assert result.index.equals(frame.index) and result.index.name == "flight"
    doubled = digits.predict(frame.iloc[[1, 0, 1]])
    assert list(doubled.index) == ["early", "late", "early"]
    assert column(doubled) == [456.0, 123.0, 456.0]


def test_rows_keep_their_order_over_many_batches(digits: LoadedModel) -> None:
    numbers = np.arange(2 * BATCH + 3, dtype=np.float64)
    result = digits.predict({"a": np.zeros_like(numbers), "b": np.zeros_like(numbers), "c": numbers})
    assert np.array_equal(result["line"].to_numpy(), numbers)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize(("outputs", "kind"), [(1, pa.float32()), (3, pa.list_(pa.float32(), 3))])
def test_outputs_become_numbers_or_lists(tmp_path: Path, rows: int, outputs: int, kind: pa.DataType) -> None:
    model = loaded(tmp_path, "Wide", {"outputs": outputs}, sample=torch.zeros(2, 2))
    x = torch.randn(rows, 2)
    result = model.predict({"a": x[:, 0].numpy(), "b": x[:, 1].numpy()})
    assert result.schema.field("line").type == kind
    expected = model.module(x).detach()
    assert column(result) == (expected[:, 0] if outputs == 1 else expected).tolist()


@pytest.mark.parametrize("model", ["Line", "make_line", "NewLine"])
def test_outputs_of_one_number_a_row_become_numbers(tmp_path: Path, model: str) -> None:
    result = loaded(tmp_path, model).predict({"a": [1.0], "b": [2.0]})
    assert result.schema.field("line").type == pa.float32()
    assert result.num_rows == 1


def test_a_single_row_that_a_model_squeezed_away_is_still_a_row() -> None:
    class Squeezes(zoo.Wide):
        def forward(self, x: Any) -> Any:
            return super().forward(x).squeeze()

    assert forward(Squeezes(2, 1), torch.zeros(1, 2)).shape == (1,)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1, 4], pa.int8()), EXPECTED),
        (pa.array([1, 4], pa.int64()), EXPECTED),
        (pa.array([1, 4], pa.uint16()), EXPECTED),
        (pa.array([1, 4], pa.float32()), EXPECTED),
        (pa.array([1, 4], pa.float16()), EXPECTED),
        (pa.array([True, False]), [123.0, 56.0]),
        (pa.array([2**24, -(2**24)]), None),
    ],
    ids=["int8", "int64", "uint16", "float32", "float16", "boolean", "the largest integers"],
)
def test_every_type_of_number_is_taken(digits: LoadedModel, values: pa.Array, expected: list[float] | None) -> None:
    result = column(digits.predict(pa.table({**ROWS, "a": values})))
    assert result == expected if expected else len(result) == 2


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pa.array([1.0, None]), "holds 1 nulls, NaN or infinities"),
        (pa.array([None, None], pa.int64()), "holds 2 nulls"),
        (pa.array([None, True]), "holds 1 nulls"),
        (pa.array([float("nan"), None]), "holds 2 nulls, NaN or infinities"),
        (pa.array([1.0, float("inf")]), "holds 1 nulls, NaN or infinities"),
        (pa.array([1.0, -float("inf")], pa.float32()), "holds 1 nulls, NaN or infinities"),
        (pa.array(["1", "2"]), "is of type string"),
        (pa.array([1, 2], pa.timestamp("us")), "is of type timestamp"),
        (pa.array([[1.0], [2.0]]), "is of type list"),
        (pa.array([1, 2**24 + 1]), "holds an integer beyond 16777216"),
        (pa.array([-(2**24) - 1, 0]), "holds an integer beyond 16777216"),
        (pa.array([2**63, 0], pa.uint64()), "holds an integer beyond 16777216"),
        (pa.array([1e300, 0.0]), "holds a number too large for float32"),
        (pa.array(["1", "2"]).dictionary_encode(), "is of type dictionary"),
    ],
)
def test_a_feature_that_the_model_cannot_take_is_refused_by_name(
    digits: LoadedModel, values: pa.Array, text: str
) -> None:
    with refused("SDDP-504", "feature 'a'", text):
        digits.predict(pa.table({**ROWS, "a": values}))


def test_other_columns_may_hold_anything(digits: LoadedModel) -> None:
    rows = pa.table({**ROWS, "extra": pa.array([None, float("nan")])})
    assert column(digits.predict(rows)) == EXPECTED


@pytest.mark.parametrize("rows", [{"a": [1.0], "c": [1.0]}, {"a": [], "c": []}], ids=["rows", "no rows"])
def test_a_missing_feature_is_named_with_those_that_are_there(digits: LoadedModel, rows: Any) -> None:
    with refused("SDDP-504", "the rows lack the feature 'b'; they have: a, c.", "Give all features once: a, b, c."):
        digits.predict(rows)


def test_a_feature_given_twice_is_refused(digits: LoadedModel) -> None:
    twice = pa.Table.from_arrays([pa.array([1.0])] * 4, names=["a", "b", "c", "b"])
    with refused("SDDP-504", "the feature 'b' 2 times"):
        digits.predict(twice)


@pytest.mark.parametrize(
    "rows",
    [
        {"a": [1.0], "b": [1.0, 2.0], "c": [1.0]},
        [{"a": 1.0, "b": 1.0, "c": 1.0}, {"a": "x", "b": 1.0, "c": 1.0}],
        pd.DataFrame({"a": [1, "x"], "b": [1, 2], "c": [1, 2]}),
        pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "b"]),
        [[1.0, 2.0, 3.0]],
    ],
    ids=["lengths differ", "types differ", "types differ in a frame", "names doubled in a frame", "rows without names"],
)
def test_rows_that_make_no_table_are_refused(digits: LoadedModel, rows: Any) -> None:
    with refused("SDDP-504", "the rows make no table"):
        digits.predict(rows)


@pytest.mark.parametrize("rows", [np.zeros((2, 3)), "a,b,c", None, pd.Series([1.0]), torch.zeros(2, 3)])
def test_what_has_no_columns_is_refused(digits: LoadedModel, rows: Any) -> None:
    with refused("SDDP-504", f"rows are a {type(rows).__name__}"):
        digits.predict(rows)


EMPTY: list[Callable[[], Any]] = [
    lambda: pa.table(ROWS).slice(0, 0),
    lambda: pd.DataFrame(ROWS).iloc[:0],
    lambda: pd.DataFrame(columns=["a", "b", "c"]),
    lambda: {"a": [], "b": [], "c": []},
    lambda: [],
]


@pytest.mark.parametrize("rows", EMPTY, ids=["table", "sliced frame", "empty frame", "dict", "list"])
def test_no_rows_give_no_predictions(digits: LoadedModel, rows: Callable[[], Any]) -> None:
    given = rows()
    result = digits.predict(given)
    assert column(result) == []
    assert isinstance(result, pd.DataFrame if isinstance(given, pd.DataFrame) else pa.Table)


@pytest.mark.parametrize(("outputs", "dtype"), [(1, torch.float32), (3, torch.float32), (3, torch.float64)])
def test_no_rows_give_the_type_that_rows_would(tmp_path: Path, outputs: int, dtype: torch.dtype) -> None:
    sample = torch.zeros(2, 2, dtype=dtype)
    model = loaded(tmp_path, "Wide", {"outputs": outputs}, sample=sample, prepare=lambda module: module.to(dtype))
    some, none = model.predict({"a": [1.0], "b": [1.0]}), model.predict({"a": [], "b": []})
    assert none.schema == some.schema


def test_a_model_in_float64_gets_its_inputs_in_float64(tmp_path: Path) -> None:
    features = ("a", "b", "c")
    model = loaded(tmp_path, "Digits", features=features, prepare=lambda module: module.double())
    seconds = 1_700_000_000.25  # float32 would make 1,700,000,000 of it, or a number a minute away
    result = model.predict({"a": [0.0], "b": [0.0], "c": [seconds]})
    assert result.schema.field("line").type == pa.float64()
    assert column(result) == [seconds]


def test_a_model_in_bfloat16_predicts_in_float32(tmp_path: Path) -> None:
    model = loaded(tmp_path, "Line", prepare=lambda module: module.bfloat16())
    result = model.predict({"a": [1.0], "b": [2.0]})
    assert result.schema.field("line").type == pa.float32()
    assert column(result) == [model.module(torch.tensor([[1.0, 2.0]], dtype=torch.bfloat16)).item()]


@pytest.mark.parametrize(
    ("kind", "text"),
    [("tuple", "a tuple"), ("one", "shape (1,) for 2 rows"), ("deep", "shape (2, 1, 2) for 2 rows")],
)
def test_outputs_that_are_no_predictions_are_refused(tmp_path: Path, kind: str, text: str) -> None:
    model = loaded(tmp_path, "Odd", {"kind": kind})
    with refused("SDDP-504", text, "Let forward(x) return one tensor"):
        model.predict({"a": [1.0, 2.0], "b": [1.0, 2.0]})


def test_predicting_neither_trains_nor_leaves_a_mode_behind() -> None:
    module, x = zoo.Noisy().train(), torch.randn(6, 2)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    assert torch.equal(forward(module, x), forward(module, x))
    assert module.training
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert not forward(module, x).requires_grad

"""The manifest comes back as it was written, and says before Spark is asked what can't be trained on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparkddp.spec import wire
from airflow_provider_sparkddp.spec.manifests import (
    FLOAT32_EXACT,
    INTEGERS,
    NUMERIC,
    Column,
    Manifest,
    data_uri,
    require_columns,
    require_trainable,
)
from tests.support.refusals import refused
from tests.support.samples import COLUMNS, manifest, with_column

WHERE = "file:///run/manifest.json"
TEXT = manifest().to_text()


def test_a_manifest_survives_storage() -> None:
    assert Manifest.from_text(TEXT, WHERE) == manifest()


@given(st.integers(1, len(TEXT) - 3))
def test_a_manifest_with_one_changed_letter_is_refused(place: int) -> None:
    changed = TEXT[:place] + ("x" if TEXT[place] != "x" else "y") + TEXT[place + 1 :]
    # Without the word there is no protocol number to be of.
    with refused("SDDP-208" if '"protocol"' in changed else "SDDP-306", WHERE):
        Manifest.from_text(changed, WHERE)


def test_another_kind_of_file_is_refused_as_a_manifest() -> None:
    with refused("SDDP-208", "sparkddp/result"):
        Manifest.from_text(wire.pack("result", {}), WHERE)


def test_figures_of_the_ranks_add_up_to_those_of_the_split() -> None:
    assert manifest().world_size == 2
    assert manifest().rank_rows("train") == [5, 4]
    assert manifest().rank_bytes("train") == [500, 400]
    assert manifest().rows("train") == 9
    assert manifest().rows("validation") == 0


def test_files_lie_beside_the_manifest_wherever_it_was_moved() -> None:
    assert data_uri("s3://b/moved/manifest.json", manifest().files[0]) == "s3://b/moved/data/a.parquet"


def test_a_missing_column_is_refused_with_role_available_ones_and_the_nearest() -> None:
    with refused("SDDP-204", "features names 'delai'", "delay, hour, late, carrier", "Did you mean 'delay'?"):
        require_columns(manifest(), {"hour": "features", "delai": "features"})


def test_whole_numbers_floats_and_booleans_can_be_trained_on() -> None:
    require_trainable(manifest(), {"delay": "target", "hour": "features", "late": "features"})


@pytest.mark.parametrize("type_", ["string", "date", "timestamp", "decimal(10,2)", "array<float>"])
def test_a_column_that_is_no_number_is_refused_with_its_type(type_: str) -> None:
    with refused("SDDP-205", "features column 'odd'", type_):
        require_trainable(with_column(Column("odd", type_)), {"odd": "features"})


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (Column("gap", "double", nulls=3), "holds 3 nulls;"),
        (Column("gap", "double", nans=1), "holds 1 NaN;"),
        (Column("gap", "float", infinities=2), "holds 2 infinities;"),
        (Column("gap", "boolean", nulls=1), "holds 1 nulls;"),
        (Column("gap", "double", nulls=1, nans=2, infinities=3), "1 nulls, 2 NaN, 3 infinities"),
    ],
)
def test_gaps_are_refused_each_kind_with_its_count(column: Column, told: str) -> None:
    with refused("SDDP-206", "target column 'gap'", told):
        require_trainable(with_column(column), {"gap": "target"})


@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize("value", [FLOAT32_EXACT + 1, -FLOAT32_EXACT - 1])
def test_an_integer_that_float32_cannot_hold_is_refused_with_column_and_value(type_: str, value: int) -> None:
    column = Column("id", type_, minimum=min(value, 0), maximum=max(value, 0))
    with refused("SDDP-207", "features column 'id'", str(value), str(FLOAT32_EXACT)):
        require_trainable(with_column(column), {"id": "features"})


@pytest.mark.parametrize("type_", NUMERIC)
def test_an_integer_at_the_limit_and_a_large_float_pass(type_: str) -> None:
    limit = FLOAT32_EXACT if type_ in INTEGERS else 1e30
    require_trainable(with_column(Column("ok", type_, minimum=-limit, maximum=limit)), {"ok": "features"})


def test_columns_that_are_not_used_may_be_anything() -> None:
    odd = with_column(Column("id", "long", nulls=9, maximum=2**60))
    assert len(odd.columns) == len(COLUMNS) + 1
    require_trainable(odd, {"delay": "features"})

"""The same seed, data and number of ranks give the same bits, in whatever Spark session they train."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import start_session, stop_session
from tests.support import walk


@contextmanager
def session(folder: Path) -> Iterator[Any]:
    spark = start_session("local[2]", {"spark.sql.warehouse.dir": str(folder / "warehouse")})
    yield spark
    stop_session(spark)


@pytest.mark.slow
def test_two_sessions_give_the_same_bits(tmp_path: Path) -> None:
    manifest, found = walk.line_manifest(tmp_path / "data"), []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        dropout = {
            "model": "tests.support.watched_model:Dropout",
            "model_kwargs": {"folder": str(folder)},
            "trainer": {"max_epochs": 2},
        }
        with session(folder) as spark:
            walk.run(spark, folder, manifest, {"dropout": dropout}, 2)
        found.append([json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(2)])
    assert found[0] == found[1]

"""The partition task's XCom stays small: what is large is left to the manifest, and a training takes either form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.partition import xcom
from airflow_provider_sparkddp.spec.manifests import TRAIN, VALIDATION, Manifest, PartFile, Piece
from airflow_provider_sparkddp.spec.references import manifest_uri

URI = "s3://bucket/flights/scheduled__2026-11-30/partition/unmapped/1-48407e9bf602/manifest.json"


def manifest(files: int, ranks: int, name: str = "part-{:05}-3f0e6f9c.zstd.parquet") -> Manifest:
    """Files of 1,000,003 rows, dealt to the ranks in turn; every tenth is for validation."""
    made = [
        PartFile(f"data/{name.format(i)}", VALIDATION if i % 10 == 9 else TRAIN, 1_000_003, 9, "0" * 64, (1_000_003,))
        for i in range(files)
    ]
    shares = {
        split: tuple(
            tuple(Piece(i, 0, 0, 1_000_003) for i in range(rank, files, ranks) if made[i].split == split)
            for rank in range(ranks)
        )
        for split in (TRAIN, VALIDATION)
    }
    return Manifest(ranks, 1, 0, (), tuple(made), shares, "table t")


def test_a_small_manifest_is_told_whole() -> None:
    values = xcom.values(manifest(20, 2), URI)
    assert values["manifest"] == URI
    assert len(values["files"]) == values["num_files"] == 20
    assert values["rows"] == {TRAIN: [10 * 1_000_003, 8 * 1_000_003], VALIDATION: [0, 2 * 1_000_003]}
    assert values["total_rows"] == {TRAIN: 18 * 1_000_003, VALIDATION: 2 * 1_000_003}
    assert (values["bytes"], values["num_nodes"], values["devices"]) == (180, 2, 1)
    assert (values["files_in_manifest"], values["reused"]) == (False, False)


@pytest.mark.parametrize(
    ("files", "ranks", "files_told", "rows_told"),
    [(20, 2, True, True), (10_000, 4, False, True), (10_000, 5_000, False, False), (20, 5_000, True, True)],
)
@pytest.mark.parametrize("name", ["part-{:05}-" + "x" * 180 + ".parquet", "späte-flüge-日本-" * 8 + "{}.parquet"])
def test_however_many_files_and_ranks_it_fits(
    files: int, ranks: int, files_told: bool, rows_told: bool, name: str
) -> None:
    values = xcom.values(manifest(files, ranks, name), URI)
    # In whatever way the database writes it down.
    for text in (json.dumps(values), json.dumps(values, ensure_ascii=False)):
        assert len(text.encode()) < xcom.LIMIT - xcom.ROOM
    assert (len(values["files"]) == files, bool(values["rows"])) == (files_told, rows_told)
    assert values["files_in_manifest"] is not files_told
    assert values["num_files"] == files
    assert sum(values["total_rows"].values()) == files * 1_000_003


def test_letters_that_json_writes_long_are_counted_as_long_as_they_are() -> None:
    few = manifest(250, 2, "日" * 40 + "{:05}")
    characters = sum(len(file.name) for file in few.files)
    assert characters < xcom.LIMIT - xcom.ROOM, "as characters they would fit"
    assert xcom.values(few, URI)["files"] == []


def test_files_go_before_rows_and_both_before_what_is_added() -> None:
    more: dict[str, Any] = {"drift": {"new": ["x" * 100] * 50}, "groups": 7, "skew": [1.0] * 20_000}
    values = xcom.values(manifest(20, 2), URI, more=more)
    assert (values["files"], values["rows"], values["skew"]) == ([], {}, [])
    assert (values["drift"], values["groups"]) == (more["drift"], 7)
    assert values["files_in_manifest"]


def test_a_reused_manifest_says_so() -> None:
    assert xcom.values(manifest(1, 1), URI, reused=True)["reused"] is True


@pytest.mark.parametrize(("files", "ranks"), [(20, 2), (10_000, 5_000)], ids=["whole", "pointer"])
def test_a_training_takes_both_forms(files: int, ranks: int) -> None:
    values = xcom.values(manifest(files, ranks), URI)
    for given in (values, json.dumps(values), str(values)):
        assert manifest_uri(given, "partitions") == URI

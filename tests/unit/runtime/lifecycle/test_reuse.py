"""An earlier manifest is taken again only if it is whole and its files lie there; whatever else, it is written anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.lifecycle.reuse import earlier, publish
from airflow_provider_sparkddp.spec import wire
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.storage import leases
from tests.support.tries import LISTED, WHOLE, below, folder, job, lay, manifest

SAME = "5" * 64
NOW = 1_800_000_000.0


def now() -> float:
    return NOW


@pytest.fixture
def mine(tmp_path: Path) -> Job:
    return job(tmp_path, run="later", nonce="mine")


@pytest.fixture
def made(tmp_path: Path) -> Job:
    """An earlier run's, published."""
    found = job(tmp_path, run="earlier", nonce="made")
    assert publish(found, SAME, lay(found)) == []
    return found


def test_what_was_published_is_found_by_any_run_and_counts_as_used(mine: Job, made: Job, tmp_path: Path) -> None:
    found = earlier(mine, SAME, now)
    assert found == (f"{made.directory}/manifest.json", manifest())
    assert leases.last_used(found[0]) == NOW
    assert (tmp_path / "partitions" / SAME / "current.json").exists()
    assert below(made) == WHOLE | {"used.json"}
    assert not folder(mine).exists(), "nothing is written for a run that reuses"


def test_another_fingerprint_finds_nothing(mine: Job, made: Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert earlier(mine, "6" * 64, now) is None
    assert "nothing to reuse" in capsys.readouterr().out


def test_of_two_runs_at_once_the_last_pointer_wins_and_both_manifests_stay(
    mine: Job, made: Job, tmp_path: Path
) -> None:
    at_once = job(tmp_path, run="at_once", nonce="once")
    publish(at_once, SAME, lay(at_once))
    found = earlier(mine, SAME, now)
    assert found is not None and found[0] == f"{at_once.directory}/manifest.json"
    assert below(made) == WHOLE


def _missing(job: Job) -> None:
    (folder(job) / "data" / LISTED[1]).unlink()


def _cut(job: Job) -> None:
    (folder(job) / "data" / LISTED[1]).write_bytes(b"cu")


def _no_manifest(job: Job) -> None:
    (folder(job) / "manifest.json").unlink()


def _changed(job: Job) -> None:
    path = folder(job) / "manifest.json"
    path.write_text(path.read_text().replace("table t", "table u"))


def _going(job: Job) -> None:
    leases.announce(f"{job.directory}/manifest.json", "r1", "flights.partition", NOW)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_missing, "part-00001-a.parquet of"),
        (_cut, "has 2 bytes, not 4"),
        (_no_manifest, "does not exist"),
        (_changed, "checksum differs"),
        (_going, "is being removed by retention (flights.partition)"),
    ],
)
def test_what_is_not_whole_is_not_reused_and_a_line_says_why(
    mine: Job, made: Job, spoil: Callable[[Job], None], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(made)
    assert earlier(mine, SAME, now) is None
    told = capsys.readouterr().out
    assert "sparkddp: the earlier partitions are not reused:" in told and words in told


def test_a_folder_that_was_deleted_is_not_written_into(mine: Job, made: Job) -> None:
    _no_manifest(made)
    assert earlier(mine, SAME, now) is None
    assert "used.json" not in below(made)


@pytest.mark.parametrize("text", ["{", wire.pack("current", {"manifest": "relative"}), wire.pack("current", {})])
def test_a_pointer_that_makes_no_sense_is_no_pointer(
    mine: Job, made: Job, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "partitions" / SAME / "current.json").write_text(text)
    assert earlier(mine, SAME, now) is None
    assert "not reused" in capsys.readouterr().out


def test_a_pointer_that_cannot_be_written_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    mine = job(tmp_path)
    barred = replace(mine, settings={**mine.settings, "storage_root": (tmp_path / "file").as_uri()})
    [line] = publish(barred, SAME, lay(mine))
    assert "can't be reused" in line and "SDDP-301" in line


def test_where_a_use_cannot_be_noted_nothing_is_reused(
    mine: Job, made: Job, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention would take it for old."""

    def refuses(uri: str, text: str) -> None:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr(storage, "write_text", refuses)
    assert earlier(mine, SAME, now) is None
    assert "PermissionError" in capsys.readouterr().out

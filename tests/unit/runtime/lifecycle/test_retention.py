"""Retention removes what is old, this task's, and read by nobody; everything else stays, whatever it looks like."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.lifecycle import retention
from airflow_provider_sparkddp.runtime.lifecycle.retention import DAY, expire
from airflow_provider_sparkddp.spec.jobs import Job
from airflow_provider_sparkddp.storage import leases
from tests.support.refusals import refused
from tests.support.tries import WHOLE, below, folder, job, lay

NOW = 1_800_000_000.0
OLD, YOUNG = NOW - 15 * DAY, NOW - 13 * DAY
REMOVED = {"job.json"}


@pytest.fixture(params=["default", "fixed"])
def run_dir(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "run" if request.param == "fixed" else None


@pytest.fixture
def mine(tmp_path: Path, run_dir: Path | None) -> Job:
    made = job(tmp_path / "root", run_dir=run_dir)
    lay(made, written=OLD)
    return made


@pytest.fixture
def old(tmp_path: Path, run_dir: Path | None) -> Job:
    """An earlier run's, old enough to go."""
    made = job(tmp_path / "root", run="then", nonce="old", run_dir=run_dir)
    lay(made, written=OLD)
    return made


def uri(job: Job) -> str:
    return f"{job.directory}/manifest.json"


def test_old_partitions_of_earlier_runs_go_manifest_first_and_the_rest_stays(
    mine: Job, old: Job, tmp_path: Path, run_dir: Path | None
) -> None:
    young = job(tmp_path / "root", run="lately", nonce="young", run_dir=run_dir)
    lay(young, written=YOUNG)
    lines = expire(mine, 14, NOW)
    assert lines == [f"retention: removed the partitions in {old.directory}"]
    assert below(old) == REMOVED
    assert below(young) == below(mine) == WHOLE
    assert expire(mine, 14, NOW) == []


@pytest.mark.parametrize("days", [None, 0])
def test_without_days_nothing_goes(mine: Job, old: Job, days: float | None) -> None:
    assert expire(mine, days, NOW) == []
    assert below(old) == WHOLE


def test_days_may_be_parts_of_days(mine: Job, old: Job) -> None:
    assert expire(mine, 15.5, NOW) == []
    assert expire(mine, 14.5, NOW) != []


@pytest.mark.parametrize(
    "change",
    [
        {"task": "another"},
        {"map_index": 0},
        {"kind": "train"},
        {"owner": ""},
        {"owner": "another_dag/then/partition/unmapped"},
        {"owner": "flights/then/another/unmapped"},
        {"owner": "flights/then/partition/3"},
        {"owner": "then/partition/unmapped"},
    ],
    ids=str,
)
def test_what_is_not_this_tasks_stays(
    mine: Job, tmp_path: Path, run_dir: Path | None, change: dict[str, object]
) -> None:
    theirs = job(tmp_path / "root", run="then", nonce="old", run_dir=run_dir, **change)
    lay(theirs, written=OLD)
    assert expire(mine, 14, NOW) == []
    assert below(theirs) == WHOLE


def test_an_earlier_try_of_the_same_run_stays(mine: Job, tmp_path: Path, run_dir: Path | None) -> None:
    again = job(tmp_path / "root", number=2, nonce="again", run_dir=run_dir)
    lay(again, written=OLD)
    assert expire(again, 14, NOW) == []
    assert below(mine) == WHOLE


@pytest.mark.parametrize("text", [None, "{", "copied"])
def test_a_folder_that_only_looks_like_one_stays(mine: Job, old: Job, text: str | None) -> None:
    path = folder(old) / "job.json"
    if text is None:
        path.unlink()
    else:
        path.write_text(replace(old, directory="file:///elsewhere").to_text() if text == "copied" else text)
    before = below(old)
    assert expire(mine, 14, NOW) == []
    assert below(old) == before


def test_files_and_foreign_folders_among_the_runs_are_no_trouble(mine: Job, old: Job) -> None:
    for beside in (folder(old).parents[2].parent, folder(old).parent):
        beside.mkdir(parents=True, exist_ok=True)
        (beside / "a_file").write_text("x")
        (beside / "a_folder" / "deep").mkdir(parents=True)
    assert len(expire(mine, 14, NOW)) == 1


def test_a_try_that_still_runs_or_failed_is_not_retentions(mine: Job, old: Job) -> None:
    (folder(old) / "manifest.json").unlink()
    assert expire(mine, 14, NOW) == []
    assert below(old) == WHOLE - {"manifest.json"}


def test_what_is_to_be_kept_and_what_was_reused_lately_stays(mine: Job, old: Job) -> None:
    assert expire(mine, 14, NOW, keep=uri(old)) == []
    leases.touch(uri(old), YOUNG)
    assert expire(mine, 14, NOW) == []
    assert below(old) == WHOLE | {"used.json"}
    leases.touch(uri(old), OLD)
    assert len(expire(mine, 14, NOW)) == 1
    assert below(old) == REMOVED


def test_a_replay_and_a_job_without_an_owner_remove_nothing(mine: Job, old: Job) -> None:
    assert expire(replace(mine, directory=f"{mine.directory}/replay-0123abcd"), 14, NOW) == []
    assert expire(replace(mine, owner=""), 14, NOW) == []
    assert below(old) == WHOLE


# The race with a reader. Each side writes, then looks; every order of the four steps is driven here.


def reads(job: Job, at: float = NOW) -> None:
    assert leases.take(uri(job), "reader", "flights.train", lambda: at)


def test_somebody_who_reads_is_left_alone_by_name(mine: Job, old: Job) -> None:
    reads(old)
    [line] = expire(mine, 14, NOW)
    assert "stays" in line and "flights.train" in line
    assert below(old) == WHOLE | {"leases/reader.json"}


def test_a_lease_that_ended_holds_nothing(mine: Job, old: Job) -> None:
    reads(old, at=NOW - leases.HOLD - leases.SKEW - 1)
    assert len(expire(mine, 14, NOW)) == 1
    assert below(old) == REMOVED


def test_a_lease_that_cannot_be_read_holds(mine: Job, old: Job) -> None:
    reads(old)
    (folder(old) / "leases" / "reader.json").write_text("{")
    assert "stays" in expire(mine, 14, NOW)[0]
    assert below(old) >= WHOLE


def test_lease_look_announce_look_the_reader_reads_and_nothing_goes(mine: Job, old: Job) -> None:
    reads(old)
    assert leases.removers(uri(old), NOW) == []
    assert "stays" in retention.removed(uri(old), mine, NOW - 14 * DAY, NOW)
    assert below(old) >= WHOLE
    assert leases.removers(uri(old), NOW) == [], "taken back"


@pytest.mark.parametrize("remover_looks", ["before the lease", "after the lease"])
def test_announce_lease_look_the_reader_is_refused(
    mine: Job, old: Job, monkeypatch: pytest.MonkeyPatch, remover_looks: str
) -> None:
    """The reader comes between the remover's two steps, or between its look and the end."""
    look, met = leases.readers, []

    def readers(manifest: str, now: float) -> list[str]:
        found = look(manifest, now) if remover_looks == "before the lease" else []
        with (
            refused("SDDP-208", "is being removed by retention", "flights.partition"),
            leases.lease(manifest, "reader", "flights.train", lambda: NOW),
        ):
            met.append("read")
        return found or look(manifest, now)

    monkeypatch.setattr(leases, "readers", readers)
    assert expire(mine, 14, NOW) == [f"retention: removed the partitions in {old.directory}"]
    assert met == []
    assert below(old) == REMOVED


def test_lease_announce_both_look_each_sees_the_other(mine: Job, old: Job) -> None:
    reads(old)
    leases.announce(uri(old), "remover", "flights.partition", NOW)
    assert leases.removers(uri(old), NOW) == ["flights.partition"]
    assert leases.readers(uri(old), NOW) == ["flights.train"]


def test_a_use_between_the_two_looks_is_seen(mine: Job, old: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    announce = leases.announce

    def announced(*arguments: object) -> None:
        leases.touch(uri(old), NOW)
        announce(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(leases, "announce", announced)
    [line] = expire(mine, 14, NOW)
    assert "a task that reuses it" in line
    assert below(old) == WHOLE | {"used.json"}


def test_a_remover_that_gives_up_does_not_take_back_anothers_announcement(mine: Job, old: Job) -> None:
    leases.announce(uri(old), "another", "flights.partition", NOW)
    reads(old)
    assert "stays" in retention.removed(uri(old), mine, NOW - 14 * DAY, NOW)
    assert leases.removers(uri(old), NOW) == ["flights.partition"]


def test_what_a_remover_left_that_died_is_removed_by_the_next(
    mine: Job, old: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(uri: str) -> None:
        raise OSError(5, "the host is gone")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "remove_tree", dies)
        [line] = expire(mine, 14, NOW)
    assert "stays (OSError" in line
    assert below(old) == WHOLE - {"manifest.json"} | {"removing/abc.json"}
    [line] = expire(mine, 14, NOW)
    assert "what an earlier removal had left" in line
    assert below(old) == REMOVED


def test_one_folder_that_cannot_be_removed_does_not_keep_the_others(
    mine: Job, old: Job, tmp_path: Path, run_dir: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = job(tmp_path / "root", run="before", nonce="stuck", run_dir=run_dir)
    lay(stuck, written=OLD)
    announce = leases.announce

    def announced(manifest: str, nonce: str, label: str, now: float) -> None:
        if manifest == uri(stuck):
            raise PermissionError(13, "not yours")
        announce(manifest, nonce, label, now)

    monkeypatch.setattr(leases, "announce", announced)
    lines = expire(mine, 14, NOW)
    assert f"retention: {stuck.directory} stays (PermissionError: [Errno 13] not yours)" in lines
    assert below(stuck) == WHOLE
    assert below(old) == REMOVED


def test_runs_that_cannot_be_listed_are_a_line(mine: Job, old: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(uri: str) -> list[str]:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr(storage, "names", refuses)
    [line] = expire(mine, 14, NOW)
    assert "earlier runs can't be listed (PermissionError" in line
    assert below(old) == WHOLE


def test_two_removers_at_once_do_not_stumble_over_one_another(
    mine: Job, old: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = storage.remove_tree

    def after_another(uri: str) -> None:
        shutil.rmtree(uri.removeprefix("file://"), ignore_errors=True)
        really(uri)

    monkeypatch.setattr(storage, "remove_tree", after_another)
    assert expire(mine, 14, NOW) == [f"retention: removed the partitions in {old.directory}"]
    assert below(old) == REMOVED


def test_the_age_is_that_of_the_file_as_storage_tells_it(mine: Job, old: Job) -> None:
    lay(old)  # now, by this host's clock
    assert expire(mine, 14, time.time()) == []
    assert expire(mine, 14, time.time() + 15 * DAY) != []

"""What failed tries and lost attempts left goes; what is somebody else's, or tells how a try failed, stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.lifecycle.cleaning import clean
from airflow_provider_sparkddp.spec.jobs import Job
from tests.support import tries
from tests.support.tries import LISTED, WHOLE, below, folder, job, lay, manifest


@pytest.fixture(params=["default", "fixed"])
def mine(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    """The third try of this task, whose manifest is committed."""
    run_dir = tmp_path / "run" if request.param == "fixed" else None
    made = job(tmp_path / "root", number=3, nonce="n3", run_dir=run_dir)
    lay(made)
    return made


def other(mine: Job, tmp_path: Path, **facts: object) -> Job:
    """A try in the folder beside, of this same task instance unless something else is said."""
    number, nonce = facts.pop("number", 1), facts.pop("nonce", "n1")
    beside = folder(mine).parent / f"{number}-{nonce}"
    return replace(mine, nonce=str(nonce), directory=beside.as_uri(), **facts)  # type: ignore[arg-type]


def test_the_data_of_own_failed_tries_go_and_how_they_failed_stays(mine: Job, tmp_path: Path) -> None:
    failed = [other(mine, tmp_path), other(mine, tmp_path, number=2, nonce="n2")]
    for each in failed:
        lay(each, committed=False)
        (folder(each) / "result.json").write_text("{}")
    lines = clean(mine, manifest())
    for each in failed:
        assert below(each) == {"job.json", "result.json"}
    assert below(mine) == WHOLE
    assert len(lines) == 2 and all("left by a try that failed" in line for line in lines)
    assert clean(mine, manifest()) == [], "there is nothing more to do"


@pytest.mark.parametrize(
    "change",
    [
        {"owner": "flights/another_run/partition/unmapped"},
        {"owner": "flights/now/partition/0"},
        {"owner": ""},
        {"number": 3, "nonce": "n9"},
        {"number": 4, "nonce": "n4"},
        {"kind": "train"},
    ],
    ids=str,
)
def test_what_is_not_an_earlier_try_of_this_task_instance_is_not_touched(
    mine: Job, tmp_path: Path, change: dict[str, object]
) -> None:
    running = other(mine, tmp_path, **change)
    lay(running, committed=False)
    before = below(running)
    assert clean(mine, manifest()) == []
    assert below(running) == before


def test_a_try_that_committed_its_manifest_is_not_touched(mine: Job, tmp_path: Path) -> None:
    committed = other(mine, tmp_path)
    lay(committed)
    assert clean(mine, manifest()) == []
    assert below(committed) == WHOLE


@pytest.mark.parametrize("text", [None, "{", "copied"])
def test_a_folder_that_only_looks_like_a_try_is_not_touched(mine: Job, tmp_path: Path, text: str | None) -> None:
    looks_like = other(mine, tmp_path)
    lay(looks_like, committed=False)
    path = folder(looks_like) / "job.json"
    if text is None:
        path.unlink()
    else:
        # A folder that was copied from elsewhere says so: its job.json names another place.
        path.write_text(replace(looks_like, directory="file:///elsewhere").to_text() if text == "copied" else text)
    before = below(looks_like)
    assert clean(mine, manifest()) == []
    assert below(looks_like) == before


def test_a_job_without_an_owner_cleans_up_after_itself_alone(mine: Job, tmp_path: Path) -> None:
    old = replace(mine, owner="")
    lay(other(old, tmp_path), committed=False)
    lay(old, extra=("_SUCCESS",))
    assert clean(old, manifest()) == []
    assert below(other(old, tmp_path)) == WHOLE - {"manifest.json"}
    assert below(old) == WHOLE


def test_a_replay_cleans_up_after_itself_alone(mine: Job, tmp_path: Path) -> None:
    replay = replace(mine, directory=f"{mine.directory}/replay-0123abcd")
    lay(other(mine, tmp_path), committed=False)
    lay(replay, extra=("_SUCCESS",))
    assert clean(replay, manifest()) == []
    assert below(other(mine, tmp_path)) == WHOLE - {"manifest.json"}
    assert below(replay) == WHOLE


def test_what_the_manifest_does_not_list_goes(mine: Job) -> None:
    markers = ("_SUCCESS", "._SUCCESS.crc", "sparkddp_split=train/.part-00000-a.parquet.crc")
    lost = tuple(
        f"{place}/part-00001-b.parquet" for place in ("_temporary/0", "sparkddp_split=test", "sparkddp_split=train")
    )
    lay(mine, extra=(*markers, *lost))
    (folder(mine) / "data" / "_temporary" / "0" / "empty").mkdir()
    [line] = clean(mine, manifest())
    assert below(mine) == WHOLE
    assert sorted(path.name for path in (folder(mine) / "data").iterdir()) == ["sparkddp_split=train"]
    assert "removed 3 files of lost attempts" in line and all(name in line for name in lost)


def test_the_writers_own_markers_are_not_worth_a_line(mine: Job) -> None:
    lay(mine, extra=("_SUCCESS", ".x.crc"))
    assert clean(mine, manifest()) == []
    assert below(mine) == WHOLE


def test_where_the_manifests_files_do_not_lie_nothing_is_unlisted(mine: Job) -> None:
    (folder(mine) / "data" / LISTED[0]).unlink()
    left = below(mine)
    assert clean(mine, manifest()) == []
    assert below(mine) == left


def test_trouble_with_cleaning_is_a_line_and_the_rest_is_cleaned(
    mine: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = other(mine, tmp_path), other(mine, tmp_path, number=2, nonce="n2")
    for each in (first, second):
        lay(each, committed=False)
    lay(mine, extra=("_SUCCESS",))
    really = storage.remove_tree

    def refuses(uri: str) -> None:
        if uri.startswith(first.directory):
            raise PermissionError(13, "not yours")
        really(uri)

    # Root may remove everything: only storage itself can say no here.
    monkeypatch.setattr(storage, "remove_tree", refuses)
    lines = clean(mine, manifest())
    assert [line for line in lines if "PermissionError" in line and f"{first.directory}/data stays" in line]
    assert below(first) == WHOLE - {"manifest.json"}
    assert below(second) == {"job.json"}
    assert below(mine) == WHOLE


def test_mapped_copies_have_tries_of_their_own(tmp_path: Path) -> None:
    mine = job(tmp_path, number=2, nonce="n2", map_index=1)
    theirs = job(tmp_path, number=1, nonce="n1", map_index=0)
    lay(mine)
    lay(theirs, committed=False)
    assert clean(mine, manifest()) == []
    assert below(theirs) == tries.WHOLE - {"manifest.json"}

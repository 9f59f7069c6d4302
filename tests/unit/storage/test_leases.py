"""A reader says that it reads, for as long as it does; where it can't say so it reads all the same."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.storage import leases
from airflow_provider_sparkddp.storage.leases import HOLD, REMOVAL, SKEW, lease
from tests.support.refusals import refused

NOW = 1_800_000_000.0


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    path = tmp_path / "1-abc" / "manifest.json"
    path.parent.mkdir()
    path.write_text("{}")
    return path.as_uri()


def now() -> float:
    return NOW


def beside(manifest: str) -> set[str]:
    folder = Path(manifest.removeprefix("file://")).parent
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_who_reads_is_seen_while_it_reads_and_not_after(manifest: str) -> None:
    with lease(manifest, "n1", "flights.train", now), lease(manifest, "n2", "flights.validate", now):
        assert leases.readers(manifest, NOW) == ["flights.train", "flights.validate"]
        assert beside(manifest) == {"manifest.json", "leases/n1.json", "leases/n2.json"}
    assert leases.readers(manifest, NOW) == []
    assert beside(manifest) == {"manifest.json"}


def test_a_reader_that_fails_ends_its_lease_too(manifest: str) -> None:
    with pytest.raises(ZeroDivisionError), lease(manifest, "n1", "flights.train", now):
        raise ZeroDivisionError
    assert beside(manifest) == {"manifest.json"}


def test_a_reader_that_died_is_believed_for_its_time_and_what_clocks_may_differ(manifest: str) -> None:
    leases.take(manifest, "n1", "flights.train", now)
    assert leases.readers(manifest, NOW + HOLD + SKEW - 1) == ["flights.train"]
    assert leases.readers(manifest, NOW + HOLD + SKEW + 1) == []


def test_a_lease_is_renewed_while_it_is_held(manifest: str) -> None:
    renewed = threading.Event()
    told = iter(range(1000))

    def clock() -> float:
        # The lease, the look at removers, then each renewal. A third renewal comes after the second was written.
        count = next(told)
        if count >= 4:
            renewed.set()
        return NOW + count * HOLD

    with lease(manifest, "n1", "flights.train", clock, renew=0.001):
        assert renewed.wait(30)
        assert leases.readers(manifest, NOW + 3 * HOLD) == ["flights.train"]
    assert not [thread for thread in threading.enumerate() if thread.name == "sparkddp-lease"]
    assert beside(manifest) == {"manifest.json"}


@pytest.mark.parametrize(("age", "refuses"), [(0, True), (REMOVAL - 1, True), (REMOVAL + 1, False), (-SKEW, True)])
def test_a_reader_is_refused_while_a_remover_may_be_at_work(manifest: str, age: float, refuses: bool) -> None:
    leases.announce(manifest, "r1", "flights.partition", NOW - age)
    if refuses:
        words = ("is being removed by retention", "flights.partition", "removing")
        with refused("SDDP-208", *words), lease(manifest, "n1", "flights.train", now):
            pytest.fail("it read")
    else:
        with lease(manifest, "n1", "flights.train", now):
            assert leases.readers(manifest, NOW) == ["flights.train"]
    assert beside(manifest) == {"manifest.json", "removing/r1.json"}


def test_an_announcement_that_cannot_be_read_counts(manifest: str) -> None:
    storage.write_text(f"{manifest.removesuffix('manifest.json')}removing/r1.json", "{")
    with refused("SDDP-208", "r1.json"), lease(manifest, "n1", "flights.train", now):
        pytest.fail("it read")


def test_an_announcement_taken_back_refuses_nobody(manifest: str) -> None:
    leases.announce(manifest, "r1", "flights.partition", NOW)
    leases.withdraw(manifest, "r1")
    leases.withdraw(manifest, "r1")
    with lease(manifest, "n1", "flights.train", now):
        assert leases.removers(manifest, NOW) == []


def test_where_no_lease_can_be_written_a_line_says_so_and_the_reader_reads(
    manifest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # A file lies where the folder would be: not even root gets past it.
    Path(manifest.removeprefix("file://")).with_name("leases").write_text("x")
    read = []
    with lease(manifest, "n1", "flights.train", now):
        read.append(1)
    assert read == [1]
    told = capsys.readouterr().out
    assert f"sparkddp: no lease on {manifest}" in told and "SDDP-301" in told
    assert beside(manifest) == {"manifest.json", "leases"}


def test_a_renewal_that_fails_is_a_line_and_the_reader_reads_on(
    manifest: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = threading.Event()
    take = leases.take

    def takes(*arguments: object) -> bool:
        if threading.current_thread() is not threading.main_thread():
            failed.set()
            raise OSError(28, "No space left on device")
        return take(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(leases, "take", takes)
    with lease(manifest, "n1", "flights.train", now, renew=0.001):
        assert failed.wait(30)
    assert "was not renewed (OSError" in capsys.readouterr().out


def test_nothing_is_written_where_there_is_no_manifest(tmp_path: Path) -> None:
    with lease((tmp_path / "nowhere" / "manifest.json").as_uri(), "n1", "flights.train", now):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_is_being_written_is_no_lease_yet(manifest: str) -> None:
    storage.write_text(f"{manifest.removesuffix('manifest.json')}leases/n1.json.0123.tmp", "{")
    assert leases.readers(manifest, NOW) == []


def test_the_last_use_is_the_later_of_writing_and_reusing(manifest: str) -> None:
    written = storage.modified(manifest)
    assert written is not None
    assert leases.last_used(manifest) == written
    leases.touch(manifest, written + 100)
    assert leases.last_used(manifest) == written + 100
    leases.touch(manifest, written - 100)
    assert leases.last_used(manifest) == written
    assert leases.last_used(manifest.replace("manifest", "missing")) is None

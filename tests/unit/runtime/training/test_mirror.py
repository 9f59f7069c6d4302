"""Files of a training reach storage; storage that fails or hangs neither stops the training nor holds it up."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_sparkddp.runtime.training import mirror
from airflow_provider_sparkddp.runtime.training.mirror import Mirror
from tests.support.silent import silent_storage  # noqa: F401


@pytest.fixture
def local(tmp_path: Path) -> Path:
    (tmp_path / "local" / "csv" / "version_0").mkdir(parents=True)
    (tmp_path / "local" / "csv" / "empty").mkdir()
    (tmp_path / "local" / "csv" / "version_0" / "metrics.csv").write_text("step,loss\n")
    return tmp_path / "local"


def found(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


def test_all_files_are_copied_under_their_own_names_and_again_when_they_grew(local: Path, tmp_path: Path) -> None:
    made = Mirror(local, f"file://{tmp_path}/there")
    made.finish()
    (local / "csv" / "version_0" / "metrics.csv").write_text("step,loss\n1,0.5\n")
    (local / "new.txt").write_text("x")
    made.finish()
    assert made.failed is None
    assert made.arrived() == {"csv", "new.txt"}
    assert found(tmp_path / "there") == found(local)
    assert (tmp_path / "there" / "csv" / "empty").is_dir()


def test_between_two_copies_it_waits(local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Mirror(local, f"file://{tmp_path}/there")
    made.soon()
    assert made._thread is None, "the first copy comes after the first pause, too"
    monkeypatch.setattr(mirror, "SECONDS_BETWEEN_COPIES", 0.0)
    made.soon()
    assert made._thread is not None
    made._thread.join()
    assert found(tmp_path / "there") == found(local)


def test_storage_that_refuses_is_told_once_and_stops_nothing(local: Path, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("a file where the folder would be")
    made = Mirror(local, f"file://{tmp_path}/there")
    with pytest.warns(UserWarning, match="not all copied to storage: SparkDDPError.*SDDP-301") as told:
        made.finish()
        made.finish()
    assert len(told) == 1
    assert made.failed is not None


def test_a_copy_that_hangs_is_not_waited_for(local: Path, silent_storage: str) -> None:  # noqa: F811
    made = Mirror(local, silent_storage)
    with pytest.warns(UserWarning, match="was not written within 0.1 s"):
        made.finish(0.1)
    assert made._thread is not None and made._thread.daemon, "its process couldn't end"

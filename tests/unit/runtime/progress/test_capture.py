"""All that a rank's Python code says goes to its log while it trains; what was replaced is put back, for the next training."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.progress.capture import telling
from airflow_provider_sparkddp.runtime.progress.channel import Channel

own = logging.getLogger("tests.own")


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    return {"logs": f"file://{tmp_path}/logs", "progress": f"file://{tmp_path}/progress"}


def log_of(tmp_path: Path, rank: int = 0) -> str:
    return (tmp_path / "logs" / f"rank-{rank:05d}.log").read_text()


def told(channel: Channel) -> set[str]:
    return channel._noticed


def test_prints_records_and_warnings_are_in_the_log(settings: dict[str, str], tmp_path: Path, capfd: Any) -> None:
    with telling(0, "h", settings) as channel:
        print("a print")
        print("an error", file=sys.stderr)
        own.info("an info")
        own.error("a record")
        warnings.warn("a warning", UserWarning, stacklevel=1)
        warnings.warn("a later change", FutureWarning, stacklevel=1)
        sys.stdout.writelines(["x", "y\n"])
        print("no end", end="")
    log = log_of(tmp_path)
    for text in (
        "stdout  a print\n",
        "stderr  an error\n",
        "INFO    tests.own: an info\n",
        "ERROR   tests.own: a record\n",
        "UserWarning: a warning",
        "FutureWarning: a later change",
        "stdout  xy\n",
        "stdout  no end\n",
    ):
        assert text in log
    assert told(channel) == {"tests.own: a record", "UserWarning: a warning"}
    assert capfd.readouterr() == ("", ""), "no console noise"


def test_a_failure_leaves_its_traceback_in_the_log(settings: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"), telling(0, "h", settings):
        raise ValueError("mine")
    assert 'raise ValueError("mine")' in log_of(tmp_path)


def test_an_error_with_an_exception_names_it(settings: dict[str, str], tmp_path: Path) -> None:
    with telling(0, "h", settings) as channel:
        try:
            raise KeyError("k")
        except KeyError:
            own.exception("it went wrong")
    assert told(channel) == {"tests.own: it went wrong (KeyError('k'))"}
    assert "Traceback" in log_of(tmp_path)


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_replaced_is_put_back(fails: bool, settings: dict[str, str]) -> None:
    root, apart = logging.getLogger(), logging.getLogger("tests.apart")
    apart.propagate, apart.handlers = False, [logging.StreamHandler()]

    def state() -> list[Any]:
        return [sys.stdout, sys.stderr, warnings.showwarning, root.level, list(root.handlers), list(apart.handlers)]

    before = state()
    try:
        with telling(0, "h", settings):
            assert all(old is not new for old, new in zip(before[:3], state()[:3], strict=True))
            if fails:
                raise RuntimeError
    except RuntimeError:
        pass
    assert state() == before
    apart.handlers, apart.propagate = [], True


def test_two_trainings_in_one_process_see_nothing_of_each_other(
    settings: dict[str, str], tmp_path: Path, capsys: Any
) -> None:
    apart = logging.getLogger("tests.made_while_training")
    with telling(0, "h", settings) as first:
        # As a library does that is imported for the first time now: it keeps this stream for ever.
        apart.propagate, apart.handlers = False, [logging.StreamHandler()]
        apart.warning("of the first")
        warnings.warn("the same", UserWarning, stacklevel=1)
    with telling(1, "h", settings) as second:
        apart.warning("of the second")
        warnings.warn("the same", UserWarning, stacklevel=1)
    apart.warning("of nobody")
    apart.handlers, apart.propagate = [], True
    assert ("of the first" in log_of(tmp_path, 0), "of the second" in log_of(tmp_path, 0)) == (True, False)
    assert ("of the first" in log_of(tmp_path, 1), "of the second" in log_of(tmp_path, 1)) == (False, True)
    assert "UserWarning: the same" in told(first) & told(second)
    assert "of nobody" in capsys.readouterr().err


def test_a_forked_process_writes_where_it_did_before(
    settings: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with telling(0, "h", settings):
        print("of the rank")
        child = os.fork()
        if child == 0:
            print("of a loader's process", flush=True)
            own.warning("as well")
            warnings.warn("of its own", UserWarning, stacklevel=1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert "loader" not in log_of(tmp_path)
    assert "of a loader's process" in capfd.readouterr().out


def test_threads_may_print_at_once(settings: dict[str, str], tmp_path: Path) -> None:
    def work(name: int) -> None:
        for number in range(200):
            print(f"{name}/{number}")

    with telling(0, "h", settings):
        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = [piece for line in log_of(tmp_path).splitlines() for piece in line[32:].split()]
    assert "".join(found).count("/") == 800

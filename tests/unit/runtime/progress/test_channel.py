"""What a rank tells reaches storage while it trains; a storage that fails or hangs can neither stall nor fail the training."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.runtime.progress import channel as channels
from airflow_provider_sparkddp.runtime.progress.channel import MESSAGES, NOTICES, Channel
from tests.support import s3
from tests.support.silent import silent_storage  # noqa: F401

WHOLE = {"lost": 0, "log": True, "untold": 0, "error": None}


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Channel]]:
    """Channels that write at once, and all closed at the end."""
    monkeypatch.setattr(channels, "TICK_SECONDS", 0.01)
    made: list[Channel] = []

    def open_(logs: str = f"file://{tmp_path}/logs", progress: str = f"file://{tmp_path}/progress") -> Channel:
        made.append(Channel(3, "host-b", logs, progress))
        return made[-1]

    yield open_
    monkeypatch.setattr(channels, "END_SECONDS", 0.0)
    for each in made:
        each.close()


def wait_for(condition: Callable[[], Any]) -> Any:
    """What the condition gives once it is there; the test fails when that takes long."""
    pause = threading.Event()
    for _ in range(3000):
        if found := condition():
            return found
        pause.wait(0.01)
    raise AssertionError("it never came")


def messages(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def test_all_is_on_storage_while_the_rank_still_trains(opened: Any, tmp_path: Path) -> None:
    channel = opened()
    channel.event({"epoch": 1})
    channel.log.write("stdout", "first\n")
    log = tmp_path / "logs" / "rank-00003.log"
    wait_for(lambda: log.exists() and messages(tmp_path / "progress") == [{"epoch": 1}])
    channel.log.write("stdout", "second\n")
    wait_for(lambda: b"second" in log.read_bytes())
    assert b"first" in log.read_bytes()
    channel.close()
    assert channel.outcome == WHOLE


def test_what_was_told_last_is_there_after_the_end(opened: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(channels, "TICK_SECONDS", 3600.0)
    channel = opened()
    for number in range(5):
        channel.event({"epoch": number})
    channel.log.write("stderr", "the end\n")
    channel.close()
    assert [body["epoch"] for body in messages(tmp_path / "progress")] == [0, 1, 2, 3, 4]
    assert (tmp_path / "logs" / "rank-00003.log").read_text().endswith("stderr  the end\n")
    assert channel.outcome == WHOLE


def test_a_notice_is_tagged_and_the_same_one_counts_once(opened: Any, tmp_path: Path) -> None:
    channel = opened()
    for _ in range(3):
        channel.notice("warning", "UserWarning: a\n  b")
    channel.close()
    assert messages(tmp_path / "progress") == [
        {"rank": 3, "host": "host-b", "level": "warning", "text": "UserWarning: a b"}
    ]


def test_notices_are_bounded_and_the_rest_counted(opened: Any, tmp_path: Path) -> None:
    channel = opened()
    for number in range(NOTICES + 7):
        channel.notice("error", f"{number} " + "x" * 5000)
    channel.close()
    assert len(messages(tmp_path / "progress")) == NOTICES
    assert channel.outcome == {**WHOLE, "untold": 7}
    assert max(len(body["text"]) for body in messages(tmp_path / "progress")) == channels.NOTICE_CHARACTERS


def test_storage_that_refuses_is_named_and_what_it_did_not_take_is_counted(opened: Any, tmp_path: Path) -> None:
    for name in ("logs", "progress"):
        (tmp_path / name).write_text("a file where the folder would be")
    channel = opened()
    channel.event({"epoch": 1})
    channel.log.write("stdout", "hello\n")
    channel.close()
    assert (channel.outcome["lost"], channel.outcome["log"]) == (1, False)
    assert "SDDP-301" in channel.outcome["error"]


def test_storage_that_works_again_gets_what_it_missed(opened: Any, tmp_path: Path) -> None:
    blocked = tmp_path / "progress"
    blocked.write_text("a file where the folder would be")
    channel = opened()
    channel.event({"epoch": 1})
    wait_for(lambda: channel._error)
    blocked.unlink()
    wait_for(lambda: blocked.is_dir() and messages(blocked))
    channel.close()
    assert (channel.outcome["lost"], channel.outcome["log"]) == (0, True)


def test_storage_that_hangs_holds_nobody_up(
    opened: Any,
    silent_storage: str,  # noqa: F811
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(channels, "END_SECONDS", 0.1)
    channel = opened(f"{silent_storage}/logs", f"{silent_storage}/progress")
    for number in range(MESSAGES + 50):
        channel.event({"epoch": number})
        channel.log.write("stdout", f"{number}\n")
    channel.close()
    assert channel.outcome == {"lost": MESSAGES + 50, "log": False, "untold": 0, "error": "storage did not answer"}


def test_an_object_store_that_stops_midway_costs_only_what_came_after(opened: Any, monkeypatch: Any) -> None:
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {**s3.ACCESS, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
            monkeypatch.setenv(name, value)
        s3.forget()
        client = boto3.client("s3")
        client.create_bucket(Bucket="midway")
        channel = opened("s3://midway/logs", "s3://midway/progress")
        channel.event({"epoch": 1})
        channel.log.write("stdout", "before\n")
        keys = {"progress/000001.json", "logs/rank-00003.log"}
        wait_for(lambda: keys == {each["Key"] for each in client.list_objects_v2(Bucket="midway").get("Contents", ())})
        assert client.get_object(Bucket="midway", Key="logs/rank-00003.log")["Body"].read().endswith(b"before\n")
        client.close()
    finally:
        server.stop()
    channel.event({"epoch": 2})
    channel.log.write("stdout", "after\n")
    monkeypatch.setattr(channels, "END_SECONDS", 0.1)
    channel.close()
    s3.forget()
    assert (channel.outcome["lost"], channel.outcome["log"]) == (1, False)
    assert channel.outcome["error"]

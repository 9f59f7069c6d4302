"""A process of its own: the user's interpreter, the provider's zip, nothing of Airflow's settings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import venv
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp.hooks.submitters.process import ENTRY_MODULE, Process
from airflow_provider_sparkddp.spec import wire
from tests.support import stored
from tests.support.refusals import refused

ROOT = Path(__file__).resolve().parents[4]

# Stands where the provider's zip would: an entry that tells what it was given.
ENTRY = """
import os, sys
print("arguments", sys.argv[1:])
print("variables", sorted(name for name in os.environ if "AIRFLOW" in name or name == "PLANTED"))
print("stdin", repr(sys.stdin.read()))
print("broken \\udcff text".encode("utf-8", "surrogateescape").decode("latin-1"))
sys.exit(int(os.environ.get("PLANTED_STATUS", "0")))
"""
WAITING_ENTRY = """
import threading
print("up", flush=True)
threading.Event().wait(60)
"""


def code(folder: Path, source: str) -> str:
    """A folder on the path with this source as the provider's entry."""
    entry = folder.joinpath("path", *ENTRY_MODULE.split(".")).with_suffix(".py")
    entry.parent.mkdir(parents=True)
    for parent in list(entry.parents)[:3]:
        (parent / "__init__.py").touch()
    entry.write_text(source)
    return str(folder / "path")


def test_the_entry_gets_the_job_and_the_pipe_and_its_lines_reach_the_log(tmp_path: Path) -> None:
    lines: list[str] = []
    assert Process(None, code(tmp_path, ENTRY), lines.append).run("file:///job.json", "/pipe") is None
    assert lines[0] == "arguments ['file:///job.json', '--parent-pipe', '/pipe']"
    assert "stdin ''" in lines


def test_airflows_settings_and_connections_do_not_reach_the_users_code(tmp_path: Path, monkeypatch: Any) -> None:
    for name in ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW_CONN_DB", "AIRFLOW_VAR_X", "_AIRFLOW_PROCESS_CONTEXT"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("PLANTED", "kept")
    lines: list[str] = []
    Process(sys.executable, code(tmp_path, ENTRY), lines.append).run("job", "pipe")
    told = next(line for line in lines if line.startswith("variables"))
    assert "PLANTED" in told
    assert "AIRFLOW_" not in told.replace("AIRFLOW_HOME", "")


def test_a_process_that_fails_is_told_with_its_status_and_last_lines(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PLANTED_STATUS", "3")
    ended = Process(None, code(tmp_path, ENTRY), lambda line: None).run("job", "pipe")
    assert ended is not None
    assert "status 3" in ended
    assert "stdin ''" in ended


def test_only_the_last_lines_are_repeated(tmp_path: Path) -> None:
    lines: list[str] = []
    source = "import sys\nfor i in range(100): print('line', i)\nsys.exit(1)\n"
    ended = Process(None, code(tmp_path, source), lines.append).run("job", "pipe")
    assert len(lines) == 100
    assert ended is not None
    assert ended.count("line ") == 20
    assert ended.endswith("line 99")


def test_an_interpreter_that_is_not_there_is_refused_by_its_argument() -> None:
    with refused("SDDP-101", "python='/nowhere/python'", "path of an interpreter"):
        Process("/nowhere/python", "", lambda line: None).run("job", "pipe")


def test_a_file_that_cannot_be_run_is_refused_by_its_argument(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("not a program")
    with refused("SDDP-101", "cannot be started"):
        Process(str(tmp_path / "python"), "", lambda line: None).run("job", "pipe")


def test_an_interpreter_that_fails_at_once_is_told_with_its_status(tmp_path: Path) -> None:
    with refused("SDDP-101", "python='/bin/false'", "status 1"):
        Process("/bin/false", str(tmp_path), lambda line: None).run("job", "pipe")


def test_an_interpreter_without_the_cluster_extra_is_refused_by_what_it_lacks(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    with refused("SDDP-101", "lacks", "torch", "safetensors", "[cluster]"):
        Process(str(tmp_path / "bare" / "bin" / "python"), "", lambda line: None).run("job", "pipe")


def test_a_process_whose_task_was_killed_ends_though_its_log_has_gone_too(tmp_path: Path) -> None:
    """The real entry, exporting a model whose code waits while it is imported."""
    import psutil

    pipe = tmp_path / "imported"
    os.mkfifo(pipe)
    (tmp_path / "waiting.py").write_text(
        f"import os, pathlib, threading\npathlib.Path({str(pipe)!r}).write_text(str(os.getpid()))\nthreading.Event().wait(60)\n"
    )
    stored.store(tmp_path / "model")
    text = (tmp_path / "model" / "model.json").read_text()
    body = wire.unpack("model", text, "model.json", code="SDDP-501")
    (tmp_path / "model" / "model.json").write_text(wire.pack("model", {**body, "model": "waiting:Net"}))
    settings = {
        "model": (tmp_path / "model").as_uri(),
        "destination": (tmp_path / "out").as_uri(),
        "formats": ["safetensors"],
        "trusted_modules": ["waiting"],
    }
    asked = {"kind": "export", "master": "", "conf": {}, "folder": str(tmp_path), "settings": settings}
    asked |= {"py_files": [str(tmp_path / "waiting.py")]}
    task = subprocess.Popen(
        [sys.executable, "-m", "tests.support.submit"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert task.stdin is not None
    assert task.stdout is not None
    task.stdin.write(json.dumps(asked))
    task.stdin.close()
    child = psutil.Process(int(pipe.read_text()))
    os.kill(task.pid, signal.SIGKILL)
    task.wait()
    task.stdout.close()
    child.wait(timeout=10)
    assert not (tmp_path / "out").exists()


def test_nothing_in_the_current_folder_hides_the_provider(tmp_path: Path, monkeypatch: Any) -> None:
    path, here = code(tmp_path, ENTRY), tmp_path / "here"
    (here / "airflow_provider_sparkddp").mkdir(parents=True)
    (here / "airflow_provider_sparkddp" / "__init__.py").write_text("raise SystemExit('the wrong package')")
    (here / "json.py").write_text("raise SystemExit('the wrong json')")
    monkeypatch.chdir(here)
    assert Process(None, path, lambda line: None).run("job", "pipe") is None


def test_a_cancelled_process_ends_and_is_told(tmp_path: Path) -> None:
    up, ended = threading.Event(), []
    process = Process(None, code(tmp_path, WAITING_ENTRY), lambda line: up.set())
    runner = threading.Thread(target=lambda: ended.append(process.run("job", "pipe")))
    runner.start()
    assert up.wait(30)
    process.cancel()
    runner.join(30)
    assert ended
    assert "status -15" in ended[0]
    process.cancel()  # harmless when nothing runs


def test_cancelling_before_the_start_is_harmless(tmp_path: Path) -> None:
    lines: list[str] = []
    process = Process(None, code(tmp_path, ENTRY), lines.append)
    process.cancel()
    assert process.run("job", "pipe") is None
    assert lines

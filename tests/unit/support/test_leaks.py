"""The guard of tests/conftest.py, shown to fail on each kind of leak, and not on what wider fixtures hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.leaks import REPOSITORY

# A file of tests for a pytest of its own; what begins with test_leaks_ must fail.
PLANTED = """
import os, sys, threading, types
from pathlib import Path
import pytest

stop = threading.Event()
fake = types.ModuleType("pyspark.core.context")
fake.SparkContext = types.SimpleNamespace(_active_spark_context=None)

@pytest.fixture(scope="session", autouse=True)
def end_threads():
    yield
    stop.set()

@pytest.fixture(scope="module")
def session_of_the_module():
    sys.modules["pyspark.core.context"] = fake
    fake.SparkContext._active_spark_context = object()
    os.environ["OF_THE_MODULE"] = "1"
    yield
    fake.SparkContext._active_spark_context = None
    del os.environ["OF_THE_MODULE"]

def test_leaks_environment_added():
    os.environ["PLANTED"] = "1"

def test_clean_after_a_leak_was_put_back():
    assert "PLANTED" not in os.environ

def test_leaks_environment_removed():
    del os.environ["HOME"]

def test_leaks_directory(tmp_path):
    os.chdir(tmp_path)

def test_leaks_threads():
    threading.Thread(target=stop.wait, name="planted").start()

def test_leaks_files():
    Path("planted.txt").write_text("x")

def test_leaks_spark(session_of_the_module):
    fake.SparkContext._active_spark_context = object()

def test_leaks_process_group(tmp_path):
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)

def test_leaks_although_the_marker_has_no_reason():
    pass
test_leaks_although_the_marker_has_no_reason = pytest.mark.leaks("files")(test_leaks_although_the_marker_has_no_reason)

@pytest.mark.leaks("files", reason="planted")
def test_clean_because_the_leak_is_allowed():
    Path("allowed.txt").write_text("x")

@pytest.mark.leaks("files", reason="planted")
def test_leaks_another_kind_than_allowed():
    os.environ["PLANTED"] = "1"

def test_clean_with_monkeypatch(monkeypatch, tmp_path):
    monkeypatch.setenv("PLANTED", "1")
    monkeypatch.chdir(tmp_path)
    Path("here.txt").write_text("x")

def test_clean_with_a_session_of_the_module(session_of_the_module):
    assert fake.SparkContext._active_spark_context is not None

def test_clean_with_a_thread_that_ends():
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
"""
FIXTURE_THAT_LEAKS = """
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def careless():
    yield
    Path("of_the_fixture.txt").write_text("x")

def test_clean_itself(careless):
    pass
"""


def outcomes(folder: Path, source: str) -> dict[str, str]:
    """Test -> "passed", or why it did not, of a pytest of its own that runs under the guard."""
    (folder / "test_planted.py").write_text(source)
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    report, scratch = folder.with_suffix(".xml"), folder.with_suffix(".scratch")
    # With a scratch folder of its own it doesn't tidy up what other runs left.
    options = ["-q", "-p", "no:cacheprovider", f"--basetemp={scratch}", f"--junitxml={report}"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_planted.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        told = "".join(str(bad.text) for kind in ("failure", "error") for bad in case.iter(kind))
        found[case.attrib["name"]] = found.get(case.attrib["name"], "") + told
    return {name: told or "passed" for name, told in found.items()}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return outcomes(tmp_path_factory.mktemp("planted"), PLANTED)


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("environment_added", "environment: PLANTED"),
        ("environment_removed", "environment: HOME"),
        ("directory", "directory: "),
        ("threads", "threads: planted"),
        ("files", "planted.txt"),
        ("spark", "spark: a Spark session is active"),
        ("process_group", "process group: torch.distributed is initialized"),
        ("although_the_marker_has_no_reason", "reason="),
        ("another_kind_than_allowed", "environment: PLANTED"),
    ],
)
def test_a_leaking_test_fails_and_says_what_it_left(planted: dict[str, str], test: str, told: str) -> None:
    assert told in planted[f"test_leaks_{test}"]


def test_a_clean_test_passes(planted: dict[str, str]) -> None:
    clean = {name: told for name, told in planted.items() if name.startswith("test_clean_")}
    assert len(clean) == 5
    assert set(clean.values()) == {"passed"}


def test_a_fixture_of_a_wider_scope_that_leaks_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert "of_the_fixture.txt" in outcomes(tmp_path / "run", FIXTURE_THAT_LEAKS)["test_clean_itself"]

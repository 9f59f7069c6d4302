"""`make demo` and `make test` say in one line what is wrong with Java, and how to mend it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "java.sh"
MAKEFILE = SCRIPT.parent.parent / "Makefile"


def check(home: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "JAVA_HOME": str(home)}
    return subprocess.run(["bash", str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)


def java(home: Path, version: str) -> Path:
    """A `java` that says it is of this version, as the real one does, on standard error."""
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    binary.chmod(0o755)
    return home


def test_an_old_java_is_refused_in_one_line_with_the_command_that_mends_it(tmp_path: Path) -> None:
    ran = check(java(tmp_path, "11.0.22"))
    assert ran.returncode == 1
    assert ran.stderr.startswith("Java 11 is too old: Spark 4.2 needs Java 17 or newer.")
    assert "apt-get install openjdk-17-jre-headless" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_missing_java_is_refused_in_one_line(tmp_path: Path) -> None:
    ran = check(tmp_path)
    assert ran.returncode == 1
    assert ran.stderr.startswith("No Java found: Spark 4.2 needs Java 17 or newer.")
    assert ran.stderr.count("\n") == 1


def test_java_17_and_newer_pass_without_a_word(tmp_path: Path) -> None:
    for version in ("17.0.15", "21.0.4", "25"):
        ran = check(java(tmp_path / version, version))
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_both_commands_check_it_before_they_install_anything() -> None:
    lines = MAKEFILE.read_text().splitlines()
    for target in ("demo:", "test:"):
        line = next(line for line in lines if line.startswith(target))
        assert line.split()[1] == "java"

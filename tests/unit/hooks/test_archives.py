"""Packed environments: what is in an archive, where executors find it, and which Python they run."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sparkddp.hooks import archives
from airflow_provider_sparkddp.hooks.archives import EXECUTORS_PYTHON, Archive
from airflow_provider_sparkddp.spec.arguments import UNKNOWN
from tests.support.refusals import refused

OURS = f"{sys.version_info.major}.{sys.version_info.minor}"
MASTER = "spark://host"
ENVIRONMENT = ("bin/python", f"lib/python{OURS}/site-packages/only_here.py")


def pack(folder: Path, *names: str, name: str = "environment.tar.gz") -> str:
    """An archive of empty files; its name."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(folder / name, "w") as zipped:
            for each in names:
                zipped.writestr(each, "")
        return name
    with tarfile.open(folder / name, "w:gz" if name.endswith("gz") else "w") as packed:
        for each in names:
            packed.addfile(tarfile.TarInfo(each), io.BytesIO())
    return name


@pytest.mark.parametrize(
    ("value", "listed"),
    [
        (None, []),
        ("", []),
        ("a.tar.gz#a", ["a.tar.gz#a"]),
        ("a.tar.gz#a, s3://b/c.zip#c", ["a.tar.gz#a", "s3://b/c.zip#c"]),
        (["a.tar.gz#a", "b.zip"], ["a.tar.gz#a", "b.zip"]),
        ("['a.tar.gz#a', 'b.zip']", ["a.tar.gz#a", "b.zip"]),
        ([], []),
        (UNKNOWN, []),
    ],
    ids=str,
)
def test_one_text_as_spark_submit_takes_it_or_a_list(value: Any, listed: Any) -> None:
    assert archives.entries(value) == listed


@pytest.mark.parametrize("prefix", ["", "./"], ids=["as venv-pack writes it", "as tar does of ."])
@pytest.mark.parametrize("name", ["environment.tar.gz", "e.tgz", "e.tar", "e.zip"])
def test_executors_run_the_interpreter_of_an_archive_beside_the_dag_file(
    tmp_path: Path, name: str, prefix: str
) -> None:
    pack(tmp_path, *(prefix + each for each in ENVIRONMENT), name=name)
    found = archives.located([f"{name}#env"], tmp_path)
    assert found == [Archive(f"{tmp_path}/{name}#env", "env", True, OURS)]
    assert archives.settings(found, MASTER, {}, {}) == {EXECUTORS_PYTHON: "./env/bin/python"}


@pytest.mark.parametrize("form", ["relative", "absolute", "uri"])
def test_relative_and_absolute_paths_and_file_uris_name_the_same(tmp_path: Path, form: str) -> None:
    path = tmp_path / pack(tmp_path, *ENVIRONMENT)
    entry = {"relative": path.name, "absolute": str(path), "uri": path.as_uri()}[form]
    found = archives.located([entry], tmp_path)
    # Without a name of its own Spark unpacks it under the file's.
    assert (found[0].uri, found[0].alias) == (f"{path}#environment.tar.gz", "environment.tar.gz")
    assert archives.settings(found, MASTER, {}, {}) == {EXECUTORS_PYTHON: "./environment.tar.gz/bin/python"}


@pytest.mark.parametrize(
    ("entry", "uri", "python"),
    [
        ("s3://b/env.tar.gz#environment", "s3a://b/env.tar.gz#environment", "./environment/bin/python"),
        ("hdfs://n/env.tgz#environment", "hdfs://n/env.tgz#environment", "./environment/bin/python"),
        ("https://host/env.tar.gz#environment", "https://host/env.tar.gz#environment", "./environment/bin/python"),
        ("s3://b/words.zip#words", "s3a://b/words.zip#words", None),
    ],
)
def test_one_on_other_storage_is_known_by_its_name(tmp_path: Path, entry: str, uri: str, python: str | None) -> None:
    found = archives.located([entry], tmp_path)
    assert found[0].uri == uri
    assert archives.settings(found, MASTER, {}, {}) == ({EXECUTORS_PYTHON: python} if python else {})


def test_data_beside_an_environment_is_no_interpreter(tmp_path: Path) -> None:
    pack(tmp_path, *ENVIRONMENT)
    pack(tmp_path, "vocabulary.txt", name="words.zip")
    found = archives.located(["words.zip#words", "environment.tar.gz#environment"], tmp_path)
    assert [each.python for each in found] == [False, True]
    assert archives.settings(found, MASTER, {}, {}) == {EXECUTORS_PYTHON: "./environment/bin/python"}
    assert archives.settings(found[:1], MASTER, {}, {}) == {}


@pytest.mark.parametrize(
    ("conf", "variables"),
    [
        ({EXECUTORS_PYTHON: "./environment/bin/python3"}, {}),
        ({EXECUTORS_PYTHON: "/opt/python/bin/python"}, {}),
        ({}, {"PYSPARK_PYTHON": "python3.11"}),
    ],
)
def test_an_interpreter_that_the_user_names_stays(tmp_path: Path, conf: Any, variables: Any) -> None:
    found = archives.located([f"{pack(tmp_path, *ENVIRONMENT)}#environment"], tmp_path)
    assert archives.settings(found, MASTER, conf, variables) == {}


def test_without_archives_nothing_is_set() -> None:
    assert archives.settings([], "local[2]", {}, {}) == {}


@pytest.mark.parametrize(
    ("names", "name", "told"),
    [
        (("env/bin/python", "env/lib/python3.11/x"), "environment.tar.gz", "lies in env/bin/python"),
        (("readme.txt",), "environment.tar.gz", "holds no bin/python"),
        (("bin/python", "lib/python3.4/x"), "environment.tar.gz", f"holds Python 3.4, and the driver runs {OURS}"),
    ],
    ids=["a folder was packed", "no interpreter", "another version"],
)
def test_an_environment_that_could_not_run_is_refused(
    tmp_path: Path, names: tuple[str, ...], name: str, told: str
) -> None:
    pack(tmp_path, *names, name=name)
    with refused("SDDP-113", told):
        archives.settings(archives.located([f"{name}#environment"], tmp_path), MASTER, {}, {})


def test_another_version_is_the_users_affair_where_the_driver_is(tmp_path: Path) -> None:
    found = archives.located([f"{pack(tmp_path, 'bin/python', 'lib/python3.4/x')}#environment"], tmp_path)
    conf = {archives.DRIVERS_PYTHON: "/opt/python3.4"}
    assert archives.settings(found, MASTER, conf, {}) == {EXECUTORS_PYTHON: "./environment/bin/python"}


@pytest.mark.parametrize("content", [b"", b"no archive", "cut"], ids=["empty", "foreign", "cut"])
@pytest.mark.parametrize("name", ["e.tar.gz", "e.zip"])
def test_one_that_is_not_whole_is_refused(tmp_path: Path, content: Any, name: str) -> None:
    path = tmp_path / pack(tmp_path, *(f"readme-{i}.txt" for i in range(500)), name=name)
    path.write_bytes(path.read_bytes()[:-200] if content == "cut" else content)
    with refused("SDDP-113", str(path), "not a whole archive"):
        archives.located([name], tmp_path)


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        (["missing.tar.gz#environment"], "does not exist"),
        (["environment.tar.bz2"], "does not unpack"),
        (["model.whl"], "does not unpack"),
        (["a.tar.gz#one", "b.tar.gz#one"], "two archives are unpacked as 'one'"),
    ],
)
def test_entries_that_cannot_be_unpacked_are_refused(tmp_path: Path, listed: list[str], told: str) -> None:
    for name in ("a.tar.gz", "b.tar.gz"):
        pack(tmp_path, *ENVIRONMENT, name=name)
    with refused("SDDP-113", told):
        archives.located(listed, tmp_path)


def test_which_of_two_interpreters_must_be_said(tmp_path: Path) -> None:
    for name in ("a.tar.gz", "b.tar.gz"):
        pack(tmp_path, *ENVIRONMENT, name=name)
    found = archives.located(["a.tar.gz#one", "b.tar.gz#two"], tmp_path)
    with refused("SDDP-113", "one, two each hold an interpreter", "./one/bin/python"):
        archives.settings(found, MASTER, {}, {})


def test_an_interpreter_in_no_archive_is_refused(tmp_path: Path) -> None:
    found = archives.located([f"{pack(tmp_path, *ENVIRONMENT)}#env"], tmp_path)
    with refused("SDDP-113", "'./environment/bin/python' lies in none of the archives (env)", "./env/bin/python"):
        archives.settings(found, MASTER, {EXECUTORS_PYTHON: "./environment/bin/python"}, {})


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]"])
def test_on_a_local_master_they_are_refused(tmp_path: Path, master: str) -> None:
    found = archives.located([f"{pack(tmp_path, *ENVIRONMENT)}#environment"], tmp_path)
    with refused("SDDP-113", f"the master is {master}", "Airflow worker"):
        archives.settings(found, master, {}, {})

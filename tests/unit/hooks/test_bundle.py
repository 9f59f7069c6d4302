"""Code travels as zips named by their content: the cluster side of the provider alone, and what py_files names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import fsspec
import pytest

from airflow_provider_sparkddp.hooks.bundle import CodeZip, provider_zip, store, user_zips
from tests.support.refusals import refused

PACKAGE = "airflow_provider_sparkddp"
# The entry, with every job's module, and where each module of ours was found.
IMPORT_THE_ENTRY = f"""
import json, sys
import {PACKAGE}.runtime.entry.sparkddp_main as entry
assert set(entry.RUNS) == {{"partition", "train", "export", "validate"}}
import {PACKAGE}.runtime.jobs.export, {PACKAGE}.runtime.jobs.train
print(json.dumps({{n: m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == {PACKAGE!r}}}))
"""


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """The folder of a DAG file, with code of each form."""
    (tmp_path / "model.py").write_text("WIDTH = 3\n")
    folder = tmp_path / "code"
    (folder / "nets" / "__pycache__").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    for name in ("nets/__init__.py", "nets/wide.py", "losses.py", ".hidden/x.py", "nets/__pycache__/wide.pyc"):
        (folder / name).write_text(f"# {name}\n")
    (folder / "nets" / "table.json").write_text("{}")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("packed/__init__.py", "")
        archive.writestr("single.py", "")
    return tmp_path


def names(made: CodeZip, folder: Path) -> list[str]:
    path = folder / made.name
    path.write_bytes(made.data)
    with zipfile.ZipFile(path) as archive:
        return sorted(archive.namelist())


def test_a_file_a_folder_and_a_zip_become_a_zip_each_with_their_modules(beside: Path, tmp_path: Path) -> None:
    made = user_zips(["model.py", "code", "packed.zip"], beside)
    assert [zipped.modules for zipped in made] == [("model",), ("losses", "nets"), ("packed", "single")]
    assert names(made[0], tmp_path) == ["model.py"]
    assert names(made[1], tmp_path) == ["losses.py", "nets/__init__.py", "nets/table.json", "nets/wide.py"]
    assert made[2].data == (beside / "packed.zip").read_bytes()


def test_absolute_paths_and_file_uris_name_the_same_code(beside: Path) -> None:
    relative, absolute, uri = user_zips(["model.py", str(beside / "model.py"), (beside / "model.py").as_uri()], beside)
    assert relative == absolute == uri


def test_the_same_files_give_the_same_bytes_whenever_and_wherever_they_lie(beside: Path, tmp_path: Path) -> None:
    first = user_zips(["code"], beside)[0]
    copy = tmp_path / "elsewhere"
    for path in sorted((beside / "code").rglob("*"), reverse=True):
        if path.is_file():
            target = copy / path.relative_to(beside / "code")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
            os.utime(target, (1e9, 1e9))
            target.chmod(0o700)
    assert user_zips([str(copy)], beside)[0] == first
    (copy / "losses.py").write_text("# changed\n")
    assert user_zips([str(copy)], beside)[0].name != first.name


def test_what_is_missing_is_refused_with_the_place_that_was_looked_at(beside: Path) -> None:
    with refused("SDDP-108", "'missing.py'", str(beside / "missing.py"), "beside the DAG file"):
        user_zips(["model.py", "missing.py"], beside)


def test_a_package_keeps_its_name_and_another_folder_gives_its_contents(tmp_path: Path) -> None:
    (tmp_path / "my_pkg" / "inner").mkdir(parents=True)
    for name in ("__init__.py", "models.py", "inner/__init__.py"):
        (tmp_path / "my_pkg" / name).write_text("")
    package, above = user_zips(["my_pkg", "."], tmp_path)
    assert package.modules == above.modules == ("my_pkg",)
    (tmp_path / "code.zip").write_bytes(package.data)
    look = "import my_pkg.models, my_pkg.inner; print(my_pkg.models.__file__)"
    ran = subprocess.run(
        [sys.executable, "-c", look],
        env={"PYTHONPATH": str(tmp_path / "code.zip")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "code.zip" in ran.stdout


def test_a_folder_without_python_is_refused(beside: Path) -> None:
    (beside / "data").mkdir()
    (beside / "data" / "table.csv").write_text("a\n")
    with refused("SDDP-108", "no Python file"):
        user_zips(["data"], beside)


def test_a_file_of_another_kind_is_refused(beside: Path) -> None:
    (beside / "model.pt").write_bytes(b"weights")
    with refused("SDDP-108", "neither a .py file, a zip, a wheel nor a folder"):
        user_zips(["model.pt"], beside)


def wheel(folder: Path, files: dict[str, str], tag: str = "py3-none-any") -> str:
    """A wheel as build backends lay it out; its name."""
    info = "far_nets-1.2.dist-info"
    metadata = {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: far-nets\nVersion: 1.2\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(folder / f"far_nets-1.2-{tag}.whl", "w") as archive:
        for name, text in {**files, **metadata}.items():
            archive.writestr(name, text)
    return f"far_nets-1.2-{tag}.whl"


NETS = {"far_nets/__init__.py": "", "far_nets/deep.py": "WIDTH = 3\n", "far_nets/table.json": "{}", "far_single.py": ""}


def test_a_pure_wheel_is_imported_from_the_path_with_its_files_and_version(tmp_path: Path) -> None:
    name = wheel(tmp_path, NETS | {"far_nets-1.2.data/scripts/run.py": ""})
    made = user_zips([name], tmp_path)[0]
    assert made.modules == ("far_nets", "far_single")
    (tmp_path / "stored").mkdir()
    (tmp_path / "stored" / made.name).write_bytes(made.data)
    look = """
from importlib import metadata, resources
import far_single
from far_nets import deep
print(metadata.version("far-nets"), resources.files("far_nets").joinpath("table.json").read_text(), deep.__file__)
"""
    ran = subprocess.run(
        [sys.executable, "-c", look],
        env={"PYTHONPATH": str(tmp_path / "stored" / made.name)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith("1.2 {} ")
    assert made.name in ran.stdout


@pytest.mark.parametrize(
    ("files", "tag", "told"),
    [
        ({"far_nets/_fast.cpython-311-x86_64-linux-gnu.so": ""}, "cp311-cp311-linux_x86_64", "_fast.cpython"),
        ({"far_nets.libs/libgomp.so.1.0": ""}, "py3-none-any", "libgomp.so.1.0"),
        ({}, "py3-none-manylinux_2_28_x86_64", "one platform"),
        ({"far_nets-1.2.data/purelib/far_more.py": ""}, "py3-none-any", "far_more.py"),
    ],
    ids=["compiled", "a library", "a platform", "to be placed"],
)
def test_a_wheel_that_must_be_installed_is_refused_with_the_way(
    tmp_path: Path, files: dict[str, str], tag: str, told: str
) -> None:
    name = wheel(tmp_path, NETS | files, tag)
    with refused("SDDP-108", name, told, "archives"):
        user_zips([name], tmp_path)


@pytest.mark.parametrize(
    ("name", "inside", "told"),
    [
        ("far_nets-1.2.tar.gz", None, "source distribution"),
        ("far_nets-1.2.zip", "far_nets-1.2/PKG-INFO", "source distribution"),
        ("far_nets-1.2-py3.11.egg", "EGG-INFO/PKG-INFO", "an egg"),
    ],
)
def test_source_distributions_and_eggs_are_refused_with_the_way(
    tmp_path: Path, name: str, inside: str | None, told: str
) -> None:
    (tmp_path / name).write_bytes(b"\x1f\x8b cut")
    if inside:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(inside, "")
            archive.writestr("far_nets-1.2/far_nets.py", "")
    with refused("SDDP-108", name, told, "pip wheel"):
        user_zips([name], tmp_path)


@pytest.mark.parametrize("form", ["folder", "file", "zip"])
def test_code_that_would_hide_the_provider_is_refused(tmp_path: Path, form: str) -> None:
    entry = {"folder": "code", "file": f"{PACKAGE}.py", "zip": "code.zip"}[form]
    (tmp_path / "code" / PACKAGE).mkdir(parents=True)
    (tmp_path / "code" / PACKAGE / "__init__.py").touch()
    (tmp_path / f"{PACKAGE}.py").touch()
    with zipfile.ZipFile(tmp_path / "code.zip", "w") as archive:
        archive.writestr(f"{PACKAGE}/spec/jobs.py", "")
    with refused("SDDP-108", repr(entry), PACKAGE):
        user_zips([entry], tmp_path)


def test_the_providers_zip_holds_the_cluster_side_and_nothing_of_airflows(tmp_path: Path) -> None:
    found = names(provider_zip(), tmp_path)
    rooms = {name.split("/")[1] for name in found}
    assert rooms == {"__init__.py", "spec", "storage", "runtime"}
    assert f"{PACKAGE}/runtime/entry/sparkddp_main.py" in found
    assert not [name for name in found if "__pycache__" in name or name.endswith(".pyc")]


def test_the_providers_zip_is_the_same_each_time() -> None:
    assert provider_zip() == provider_zip()
    assert provider_zip().modules == (PACKAGE,)


def test_the_entry_runs_from_the_zip_where_the_provider_is_not_installed(tmp_path: Path) -> None:
    made = provider_zip()
    zipped = tmp_path / made.name
    zipped.write_bytes(made.data)
    # -S leaves out the installed packages; fsspec, the zip's one need, is given back by a folder that holds it alone.
    needs = tmp_path / "needs"
    needs.mkdir()
    (needs / "fsspec").symlink_to(Path(fsspec.__file__).parent)
    found = subprocess.run(
        [sys.executable, "-S", "-P", "-c", IMPORT_THE_ENTRY],
        env={"PYTHONPATH": f"{zipped}:{needs}", "PATH": os.environ["PATH"]},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    files = json.loads(found.stdout)
    assert f"{PACKAGE}.runtime.jobs.train" in files
    assert {name: path for name, path in files.items() if not path.startswith(f"{zipped}/{PACKAGE}/")} == {}


def test_a_zip_is_stored_once_under_the_name_of_its_content(beside: Path, tmp_path: Path) -> None:
    made = user_zips(["model.py"], beside)[0]
    run_dir = (tmp_path / "run").as_uri()
    ref = store(run_dir, made)
    stored = tmp_path / "run" / "code" / made.name
    assert (ref.uri, ref.sha256, ref.modules) == (stored.as_uri(), made.sha256, ("model",))
    assert stored.read_bytes() == made.data
    written = stored.stat().st_mtime_ns
    assert store(run_dir, made) == ref
    assert stored.stat().st_mtime_ns == written

"""A stored model is there whole or not at all, whatever happens while it is written, and each damage is found out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.models import bundle
from airflow_provider_sparkddp.spec import wire
from airflow_provider_sparkddp.spec.errors import SparkDDPError
from tests.support.refusals import refused
from tests.support.stored import description

REPOSITORY = Path(__file__).resolve().parents[4]

PUBLISH = """
import sys
from pathlib import Path
from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.runtime.models import bundle
from tests.support.stored import description

def publish(folder, scratch, alias):
    files = {role: Path(scratch) / f"{alias}-{role}" for role in ("weights", "parity")}
    for role, local in files.items():
        local.write_text(f"{role} of {alias} " * 1000)
    return bundle.publish(Path(folder).as_uri(), description(alias), files)
"""

KILLED = f"""{PUBLISH}
import os, signal
renames, real = 0, storage._rename

def rename(fs, source, target):
    global renames
    renames += 1
    if renames == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    real(fs, source, target)

storage._rename = rename
publish(sys.argv[1], sys.argv[2], "new")
"""

MANY = f"""{PUBLISH}
for number in range(int(sys.argv[3])):
    publish(sys.argv[1], sys.argv[2], f"m{{number}}")
"""


def child(script: str, *arguments: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], env=environment, cwd=REPOSITORY)


def put(folder: Path, scratch: Path, alias: str) -> dict[str, object]:
    """Publish a model whose two files say whose they are."""
    files = {role: scratch / f"{alias}-{role}" for role in (bundle.WEIGHTS, bundle.PARITY)}
    for role, local in files.items():
        local.write_text(f"{role} of {alias} " * 1000)
    return bundle.publish(folder.as_uri(), description(alias), files)


def owner(folder: Path, target: Path) -> str:
    """The alias in model.json, once it is sure that all files belong to it."""
    found = bundle.describe(folder.as_uri())
    require_own(bundle.fetch(folder.as_uri(), found, target), found.alias)
    return found.alias


def require_own(files: dict[str, Path], alias: str) -> None:
    for role in (bundle.WEIGHTS, bundle.PARITY):
        assert files[role].read_text().startswith(f"{role} of {alias} ")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models" / "line"


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def stored_names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def weights(folder: Path) -> Path:
    return folder / bundle.describe(folder.as_uri()).files[bundle.WEIGHTS].name


def age(path: Path, seconds: float) -> None:
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def test_what_was_published_is_described_and_fetched(folder: Path, scratch: Path, tmp_path: Path) -> None:
    receipt = put(folder, scratch, "line")
    found = bundle.describe(folder.as_uri())
    assert {**asdict(found), "files": {}} == {**asdict(description("line")), "files": {}}
    require_own(bundle.fetch(folder.as_uri(), found, tmp_path), "line")
    assert receipt["alias"] == "line"
    assert receipt["bytes"] == sum(facts.bytes for facts in found.files.values())
    assert receipt["sha256"] == json.loads((folder / "model.json").read_text())["checksum"]


@pytest.mark.parametrize(("rename", "before"), [(1, "the weights"), (2, "the sample"), (3, "model.json")])
def test_a_publisher_killed_before_anything_lands_leaves_the_old_model(
    folder: Path, scratch: Path, tmp_path: Path, rename: int, before: str
) -> None:
    put(folder, scratch, "old")
    kept = stored_names(folder)
    assert child(KILLED, folder, scratch, rename).wait() == -signal.SIGKILL
    assert owner(folder, tmp_path) == "old"
    leftovers = stored_names(folder) - kept
    assert len(leftovers) == rename  # what landed before, and the file that was about to
    for name in leftovers:
        age(folder / name, 2 * bundle.GRACE_SECONDS)
    put(folder, scratch, "next")
    assert owner(folder, tmp_path) == "next"
    assert not leftovers & stored_names(folder)


def test_a_first_publisher_that_is_killed_leaves_no_model(folder: Path, scratch: Path) -> None:
    assert child(KILLED, folder, scratch, 3).wait() == -signal.SIGKILL
    with refused("SDDP-501", "no whole model"):
        bundle.describe(folder.as_uri())


@pytest.mark.parametrize("fails", ["put_file", "write_text"])
def test_a_storage_that_fails_on_the_way_leaves_the_old_model(
    folder: Path, scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    put(folder, scratch, "old")

    def full(*arguments: object) -> None:
        raise SparkDDPError("SDDP-301", "no space is left.", "Make room.")

    with monkeypatch.context() as patched:
        patched.setattr(storage, fails, full)
        with refused("SDDP-301", "no space"):
            put(folder, scratch, "new")
    assert owner(folder, tmp_path) == "old"


def test_an_earlier_model_stays_whole_for_whoever_read_its_description(
    folder: Path, scratch: Path, tmp_path: Path
) -> None:
    put(folder, scratch, "old")
    being_read = bundle.describe(folder.as_uri())
    for path in folder.iterdir():
        age(path, 2 * bundle.GRACE_SECONDS)
    put(folder, scratch, "new")
    require_own(bundle.fetch(folder.as_uri(), being_read, tmp_path), "old")
    assert owner(folder, tmp_path) == "new"


def test_files_that_no_model_has_needed_for_an_hour_go(folder: Path, scratch: Path) -> None:
    put(folder, scratch, "first")
    first = stored_names(folder) - {"model.json"}
    put(folder, scratch, "second")
    for name in first:
        age(folder / name, 2 * bundle.GRACE_SECONDS)
    put(folder, scratch, "third")
    assert not first & stored_names(folder)
    assert len(stored_names(folder)) == 5  # model.json, and the files of the second and the third


def test_files_that_are_not_ours_stay(folder: Path, scratch: Path) -> None:
    folder.mkdir(parents=True)
    foreign = {"README.md", "weights.bin", "weights-old.safetensors", "model.json.bak", "parity-0.safetensors.tmp"}
    for name in foreign:
        (folder / name).write_text("mine")
        age(folder / name, 1e6)
    put(folder, scratch, "line")
    assert foreign <= stored_names(folder)


def test_two_exports_at_once_leave_one_of_them_whole(
    folder: Path, scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, started = storage.write_text, []

    def commit(uri: str, text: str) -> None:
        if not started:  # the slow one has put its files; now another export runs from its start to its end
            started.append(uri)
            put(folder, scratch, "quick")
            assert owner(folder, tmp_path) == "quick"
        real(uri, text)

    monkeypatch.setattr(storage, "write_text", commit)
    put(folder, scratch, "slow")
    assert started
    assert owner(folder, tmp_path) == "slow"


def test_no_mixture_is_ever_readable_while_models_are_replaced(folder: Path, scratch: Path, tmp_path: Path) -> None:
    put(folder, scratch, "m0")
    writer, seen = child(MANY, folder, scratch, 30), set()
    while writer.poll() is None:
        seen.add(owner(folder, tmp_path))
    assert writer.returncode == 0
    assert owner(folder, tmp_path) == "m29"
    assert len(seen) > 2, "the reader never met a change"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def replace(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"weights", b"WEIGHTS", 1))


def swap(path: Path) -> None:
    other = next(p for p in path.parent.iterdir() if p.name.startswith("parity"))
    path.write_bytes(other.read_bytes())


@pytest.mark.parametrize(
    ("damage", "text"),
    [(cut, "cut or replaced"), (replace, "cut or replaced"), (swap, "cut or replaced"), (Path.unlink, "is missing")],
)
def test_damaged_weights_are_refused(
    folder: Path, scratch: Path, tmp_path: Path, damage: Callable[[Path], None], text: str
) -> None:
    put(folder, scratch, "line")
    damage(weights(folder))
    with refused("SDDP-501", text, weights_name(folder)):
        bundle.fetch(folder.as_uri(), bundle.describe(folder.as_uri()), tmp_path)


def weights_name(folder: Path) -> str:
    return bundle.describe(folder.as_uri()).files[bundle.WEIGHTS].name


def edit(text: str) -> str:
    return text.replace('"alias": "line"', '"alias": "evil"')


def other_protocol(text: str) -> str:
    return json.dumps({**json.loads(text), "protocol": wire.PROTOCOL + 1})


def other_kind(text: str) -> str:
    return wire.pack("manifest", json.loads(text)["body"])


def without_target(text: str) -> str:
    body = json.loads(text)["body"]
    return wire.pack("model", {key: value for key, value in body.items() if key != "target"})


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (edit, "SDDP-501", "was changed after it was written"),
        (lambda text: text[: len(text) // 2], "SDDP-501", "is not whole JSON"),
        (lambda text: "", "SDDP-501", "is not whole JSON"),
        (lambda text: "[1]", "SDDP-501", "is of kind None"),
        (other_kind, "SDDP-501", "is of kind 'sparkddp/manifest'"),
        (without_target, "SDDP-501", "describes no model of this version"),
        (other_protocol, "SDDP-306", f"has protocol {wire.PROTOCOL + 1}; this version reads {wire.PROTOCOL}"),
    ],
    ids=["edited", "cut", "empty", "no object", "another kind", "a field is missing", "another protocol"],
)
def test_a_model_json_that_is_not_its_writers_is_refused(
    folder: Path, scratch: Path, change: Callable[[str], str], code: str, text: str
) -> None:
    put(folder, scratch, "line")
    path = folder / "model.json"
    path.write_text(change(path.read_text()))
    with refused(code, text, "model.json"):
        bundle.describe(folder.as_uri())


def test_a_folder_without_model_json_is_no_model(folder: Path, scratch: Path) -> None:
    put(folder, scratch, "line")
    (folder / "model.json").unlink()
    with refused("SDDP-501", "no whole model"):
        bundle.describe(folder.as_uri())


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "weights-0.bin", "weights-0123456789abcdef.safetensors\n"]
)
def test_a_description_cannot_name_a_file_outside_of_its_folder(folder: Path, tmp_path: Path, name: str) -> None:
    foreign = description(files={"weights": bundle.FileFacts(name, 1, "0" * 64)})
    with refused("SDDP-501", "name is foreign"):
        bundle.fetch(folder.as_uri(), foreign, tmp_path)


def test_a_folder_that_cannot_be_written_is_named(scratch: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with refused("SDDP-301", "cannot be written", str(tmp_path / "file" / "line")):
        put(tmp_path / "file" / "line", scratch, "line")

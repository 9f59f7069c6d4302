"""A stored model: a folder of files, and model.json put last, which lists each with its SHA-256. Whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from airflow_provider_sparkddp import storage
from airflow_provider_sparkddp.spec import paths, wire
from airflow_provider_sparkddp.spec.errors import SparkDDPError

DESCRIPTION = "model.json"
WEIGHTS = "weights"
PARITY = "parity"
OURS = re.compile(r"(weights|parity)-[0-9a-f]{16}\.safetensors")
# What an export that was killed leaves: files that no model.json lists, and files that were never whole.
LEFTOVER = re.compile(rf"{OURS.pattern}|({OURS.pattern}|model\.json)\.[0-9a-f]{{32}}\.tmp")
# Younger ones may be those of another export that is about to commit.
GRACE_SECONDS = 3600.0


@dataclass(frozen=True)
class FileFacts:
    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class ColumnFacts:
    """A column that the model knows: Spark's short name of its type, and of an array how many numbers each row holds."""

    name: str
    type: str
    length: int | None = None

    @property
    def width(self) -> int:
        """How many numbers of the model's input it makes."""
        return self.length or 1


@dataclass(frozen=True)
class ModelDescription:
    """model.json.

    Attributes:
        model: import path of the class or function that builds the module; `class_path` is the class that came out.
        model_kwargs: all arguments that rebuild it, with the defaults of the day.
        hyper_parameters: what the module saved of itself by save_hyperparameters, as far as it is plain data.
        output_shape: shape of one row's prediction; () for a number.
        tied: name of a tied weight -> the name under which it was saved.
        training: how it was trained, for a person and for the validation's summary.
        files: role (weights, parity) -> name in the folder, bytes and SHA-256.
        encoders: feature -> what the model makes of its raw values (runtime/data/encoders.py); the others are taken as they are.
    """

    alias: str
    model: str
    class_path: str
    model_kwargs: Mapping[str, Any]
    hyper_parameters: Mapping[str, Any]
    features: tuple[ColumnFacts, ...]
    target: ColumnFacts
    output_shape: tuple[int, ...]
    tied: Mapping[str, str]
    versions: Mapping[str, str]
    training: Mapping[str, Any]
    files: Mapping[str, FileFacts] = field(default_factory=dict)
    encoders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def from_text(cls, text: str, where: str) -> ModelDescription:
        """Raises SparkDDPError SDDP-501 or SDDP-306 when the text is not a whole, unchanged description."""
        body = wire.unpack("model", text, where, code="SDDP-501")
        try:
            return cls(
                **{
                    **body,
                    "features": tuple(ColumnFacts(**f) for f in body["features"]),
                    "target": ColumnFacts(**body["target"]),
                    "output_shape": tuple(body["output_shape"]),
                    "files": {role: FileFacts(**facts) for role, facts in body["files"].items()},
                }
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise SparkDDPError(
                "SDDP-501", f"{where} describes no model of this version ({error}).", "Export again."
            ) from error


def publish(folder_uri: str, description: ModelDescription, files: Mapping[str, Path]) -> dict[str, Any]:
    """Put the files under names of their content, then model.json: a reader sees the old model or the new one, never a mixture.

    Nothing is deleted first. What the replaced model used stays for those who are reading it; only what is older than an hour
    and belongs to neither goes.

    Args:
        files: role (weights, parity) -> local file.

    Returns:
        alias, bytes of all files, and sha256 of the description, which lists that of each file.

    Raises:
        SparkDDPError: SDDP-301.
    """
    facts = {role: _facts(role, local) for role, local in files.items()}
    earlier = _earlier(folder_uri)
    for role, local in files.items():
        storage.put_file(local, paths.join(folder_uri, facts[role].name))
    body = asdict(replace(description, files=facts))
    storage.write_text(paths.join(folder_uri, DESCRIPTION), wire.pack("model", body))
    needed = {f.name for f in facts.values()} | {f.name for f in earlier.values()}
    for name in storage.names(folder_uri):
        uri = paths.join(folder_uri, name)
        if LEFTOVER.fullmatch(name) and name not in needed and storage.older_than(uri, GRACE_SECONDS):
            storage.remove(uri)
    size = sum(f.bytes for f in facts.values())
    return {"alias": description.alias, "bytes": size, "sha256": wire.checksum(body)}


def _facts(role: str, local: Path) -> FileFacts:
    digest = storage.sha256(paths.absolute_uri(local.as_uri(), "file"))
    return FileFacts(f"{role}-{digest[:16]}.safetensors", local.stat().st_size, digest)


def _earlier(folder_uri: str) -> Mapping[str, FileFacts]:
    try:
        return describe(folder_uri).files
    except SparkDDPError:
        return {}  # nothing there, or nothing that could be read


def describe(folder_uri: str) -> ModelDescription:
    """Raises SparkDDPError SDDP-501 when there is no whole model in the folder."""
    return identify(folder_uri)[0]


def identify(folder_uri: str) -> tuple[ModelDescription, str]:
    """The description, and the SHA-256 that `publish` told of it. Raises SparkDDPError SDDP-501 as `describe`."""
    where = paths.join(folder_uri, DESCRIPTION)
    try:
        text = storage.read_text(where)
        return ModelDescription.from_text(text, where), wire.checksum(wire.unpack("model", text, where, "SDDP-501"))
    except FileNotFoundError:
        raise SparkDDPError(
            "SDDP-501", f"{where} does not exist: there is no whole model here.", "Check the path, or export again."
        ) from None


def fetch(folder_uri: str, description: ModelDescription, target: Path) -> dict[str, Path]:
    """Copy the model's files to a local folder and check each; role -> local file.

    Raises:
        SparkDDPError: SDDP-501 when a file is missing, cut or foreign.
    """
    for facts in description.files.values():
        if not OURS.fullmatch(facts.name):
            raise SparkDDPError(
                "SDDP-501", f"model.json lists the file {facts.name!r}.", "Export again; the name is foreign."
            )
        uri, local = paths.join(folder_uri, facts.name), target / facts.name
        try:
            storage.get_file(uri, local)
        except FileNotFoundError:
            raise SparkDDPError("SDDP-501", f"{uri} is missing.", "Export again.") from None
        found, digest = local.stat().st_size, storage.sha256(paths.absolute_uri(local.as_uri(), "file"))
        if (found, digest) != (facts.bytes, facts.sha256):
            raise SparkDDPError(
                "SDDP-501",
                f"{uri} has {found} bytes and SHA-256 {digest[:12]}…; model.json says {facts.bytes} and "
                f"{facts.sha256[:12]}….",
                "The file was cut or replaced. Export again.",
            )
    return {role: target / facts.name for role, facts in description.files.items()}

"""Read docker-compose.yaml the way compose does: interpolate, merge, and turn each service into plain data."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
COMPOSE_FILE = REPOSITORY / "docker-compose.yaml"
ENV_EXAMPLE = REPOSITORY / ".env.example"

_VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>\w+)(?:(?P<rule>:[-?])(?P<rest>[^}]*))?\})")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class MissingVariable(Exception):
    """A variable that the file asks for by ``${NAME:?message}`` is missing or empty."""


@dataclass(frozen=True)
class Health:
    """The health check of a service."""

    argv: tuple[str, ...]
    interval_s: float
    timeout_s: float


@dataclass(frozen=True)
class Service:
    """What a container of the service would be started with."""

    name: str
    image: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    health: Health | None
    depends_on: Mapping[str, str]
    ports: tuple[int, ...]
    mounts: tuple[tuple[str, str], ...]
    dockerfile: Path | None
    one_shot: bool


def interpolate(value: Any, variables: Mapping[str, str]) -> Any:
    """Replace ``${NAME}``, ``${NAME:-default}``, ``${NAME:?message}`` and ``$$`` in every string."""

    def replace(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "$"
        found = variables.get(match["name"], "")
        if not found and match["rule"] == ":?":
            raise MissingVariable(match["rest"])
        return found or (match["rest"] if match["rule"] == ":-" else "")

    if isinstance(value, dict):
        return {key: interpolate(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [interpolate(item, variables) for item in value]
    return _VARIABLE.sub(replace, value) if isinstance(value, str) else value


def read_raw() -> dict[str, Any]:
    """Return the file as YAML gives it, with anchors merged and variables left alone."""
    content: dict[str, Any] = yaml.safe_load(COMPOSE_FILE.read_text(encoding="utf-8"))
    return content


def read_services(variables: Mapping[str, str]) -> dict[str, Service]:
    """Return every service of the file."""
    services = interpolate(read_raw()["services"], variables)
    return {name: _parse_service(name, body) for name, body in services.items()}


def _seconds(duration: str) -> float:
    parts = re.findall(r"([\d.]+)(ms|s|m|h)", duration)
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _parse_health(body: Mapping[str, Any]) -> Health:
    kind, *rest = body["test"]
    argv = {"CMD": tuple(rest), "CMD-SHELL": ("/bin/sh", "-c", *rest)}[kind]
    return Health(argv, _seconds(body["interval"]), _seconds(body["timeout"]))


def _parse_service(name: str, body: Mapping[str, Any]) -> Service:
    command = body.get("command", [])
    published = [str(port).rsplit(":", 1)[-1] for port in body.get("ports", [])]
    mounts = (str(volume).split(":")[:2] for volume in body.get("volumes", []))
    dockerfile = body.get("build", {}).get("dockerfile")
    return Service(
        name=name,
        image=body["image"],
        argv=tuple(shlex.split(command) if isinstance(command, str) else command),
        environment={key: str(value) for key, value in body.get("environment", {}).items()},
        health=_parse_health(body["healthcheck"]) if "healthcheck" in body else None,
        depends_on={key: value["condition"] for key, value in body.get("depends_on", {}).items()},
        ports=tuple(int(port) for port in [*body.get("expose", []), *published]),
        mounts=tuple((source, target) for source, target in mounts),
        dockerfile=REPOSITORY / dockerfile if dockerfile else None,
        one_shot=body.get("restart") == "no",
    )


def read_dockerfile(path: Path) -> list[tuple[str, list[str]]]:
    """Return the instructions of a Dockerfile, each as its name and its words."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [(words[0], words[1:]) for words in (line.split() for line in text.splitlines()) if words]


def read_copies(dockerfile: Path) -> dict[str, Path]:
    """Return which file of the repository lies at which absolute path of the image."""
    copies = [words for name, words in read_dockerfile(dockerfile) if name == "COPY"]
    return {words[1]: REPOSITORY / words[0] for words in copies if len(words) == 2 and words[1].startswith("/")}

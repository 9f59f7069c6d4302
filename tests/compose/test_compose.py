"""The compose file is valid, holds no secret, pins its images, and each of its commands answers its health check.

Docker runs in none of these tests: `docker-compose config` validates the file, and the very commands, environments
and health checks that stand in it run as processes of this machine (stack.py). What no test here can show: that the
images build, and that the containers find one another on Docker's network.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import psutil
import pytest
import yaml

from .compose_file import (
    COMPOSE_FILE,
    ENV_EXAMPLE,
    REPOSITORY,
    MissingVariable,
    Service,
    interpolate,
    read_dockerfile,
    read_raw,
    read_services,
)
from .stack import POSTGRES_BINARIES, Outcome, no_process_left, running

pytestmark = [pytest.mark.compose, pytest.mark.timeout(150)]

STACK_BUDGET_S = 120.0
SECRETS = (
    "POSTGRES_PASSWORD",
    "AIRFLOW__CORE__FERNET_KEY",
    "AIRFLOW__API__SECRET_KEY",
    "AIRFLOW__API_AUTH__JWT_SECRET",
    "AIRFLOW_ADMIN_PASSWORD",
)
SERVICE_NAMES = tuple(read_raw()["services"])
DOCKERFILES = ("docker/airflow.Dockerfile", "docker/spark.Dockerfile")
PINNED = re.compile(r"^[\w./-]+:(?!latest)[\w.-]*\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?$")
INSTALL_HELP = "set TORCH_INDEX_URL in .env, see .env.example"


def skip_unless(present: object, reason: str) -> None:
    """Skip, and say why even where the summary of skips is off."""
    if not present:
        print(f"skipped: {reason}")
        pytest.skip(reason)


@pytest.fixture(scope="module")
def variables() -> dict[str, str]:
    """What .env holds once somebody did as .env.example says: each secret made by the command above it."""
    skip_unless(shutil.which("openssl"), "openssl is not installed, by which .env.example makes secrets")
    recipes = re.findall(r"^#   \$ (.+)\n(\w+)=$", ENV_EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {
        name: subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout.strip()
        for command, name in recipes
    }


@pytest.fixture(scope="module")
def services(variables: dict[str, str]) -> dict[str, Service]:
    return read_services(variables)


@pytest.fixture(scope="class")
def outcomes(services: dict[str, Service]) -> Iterator[dict[str, Outcome]]:
    """All services of the file, started once. A process left behind at the end is an error of the last test."""
    skip_unless(POSTGRES_BINARIES, "PostgreSQL's server is not installed (Debian's package postgresql)")
    skip_unless(shutil.which("java"), "Java is not installed (Debian's package openjdk-17-jre-headless)")
    for module in ("airflow", "pyspark", "psycopg2", "asyncpg"):
        skip_unless(importlib.util.find_spec(module), f"the Python package {module} is not installed")
    with running(services, STACK_BUDGET_S) as result:
        yield result


# --- The commands of the file, run ---


class TestCommands:
    """A class, so that the services are stopped before other tests start and stop their own."""

    @pytest.mark.parametrize("name", SERVICE_NAMES)
    def test_answers_its_health_check(self, outcomes: dict[str, Outcome], name: str) -> None:
        assert outcomes[name].healthy, f"{name}: {outcomes[name].detail}"


def misspell(word: str) -> Callable[[Service], Service]:
    return lambda service: replace(
        service, argv=tuple(each.replace(word, f"{word}x") for each in service.argv), depends_on={}
    )


@pytest.mark.parametrize(
    ("name", "mutate", "detail"),
    [
        ("spark-master", misspell("Master"), "ended with status"),
        ("airflow-scheduler", misspell("scheduler"), "ended with status"),
        ("airflow-init", misspell("airflow_init"), "exit status"),
        ("postgres", misspell("postgres"), "no such program"),
        ("postgres", misspell("port=5432"), "ended with status"),
    ],
    ids=["class", "subcommand", "script", "program", "option"],
)
def test_broken_command_is_reported(
    services: dict[str, Service], name: str, mutate: Callable[[Service], Service], detail: str
) -> None:
    skip_unless(POSTGRES_BINARIES, "PostgreSQL's server is not installed (Debian's package postgresql)")
    broken = mutate(services[name])
    assert broken.argv != services[name].argv
    with running({name: broken}, 30.0) as result:
        assert not result[name].healthy
        assert detail in result[name].detail


def test_command_that_runs_but_never_answers_is_reported(services: dict[str, Service]) -> None:
    silent = replace(services["spark-master"], argv=("sleep", "60"))
    with running({"spark-master": silent}, 3.0) as result:
        assert not result["spark-master"].healthy
        assert "health check says 1" in result["spark-master"].detail


def test_process_that_slipped_away_is_ended() -> None:
    with no_process_left(patience_s=0.2):
        script = "from subprocess import *; print(Popen(['sleep', '60'], start_new_session=True, stdout=DEVNULL).pid)"
        orphan = int(subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True).stdout)
        assert psutil.pid_exists(orphan)
    assert not psutil.pid_exists(orphan)


# --- Validity ---


def compose_config(folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `docker-compose config` with an environment file of these variables, and nothing from this process."""
    binary = shutil.which("docker-compose")
    skip_unless(binary, "docker-compose is not installed (Debian's package docker-compose)")
    env_file = folder / "env"
    env_file.write_text("".join(f"{name}={value}\n" for name, value in variables.items()), encoding="utf-8")
    command = [str(binary), "--env-file", str(env_file), "--file", str(COMPOSE_FILE), "config"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


def test_docker_compose_accepts_the_file(
    tmp_path: Path, variables: dict[str, str], services: dict[str, Service]
) -> None:
    result = compose_config(tmp_path, variables)
    assert result.returncode == 0, result.stderr
    # Compose and this test must read the same things out of the file.
    accepted = yaml.safe_load(result.stdout.replace("$$", "$"))["services"]
    assert set(accepted) == set(services)
    for name, service in services.items():
        assert tuple(accepted[name]["command"]) == service.argv
        assert {key: str(value) for key, value in accepted[name]["environment"].items()} == service.environment


@pytest.mark.parametrize("missing", SECRETS)
def test_missing_secret_stops_with_what_to_do(tmp_path: Path, variables: dict[str, str], missing: str) -> None:
    message = f"set {missing} in .env, see .env.example"
    with pytest.raises(MissingVariable, match=message):
        read_services(variables | {missing: ""})
    result = compose_config(tmp_path, variables | {missing: ""})
    assert result.returncode != 0
    assert message in result.stderr


# --- Secrets, pins, health checks ---


def test_env_example_holds_no_value_and_names_every_secret(variables: dict[str, str]) -> None:
    assignments = re.findall(r"^(\w+)=(.*)$", ENV_EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [value for _, value in assignments if value] == []
    assert set(variables) == set(SECRETS)
    assert all(len(value) >= 24 for value in variables.values())
    fernet = pytest.importorskip("cryptography.fernet", reason="cryptography is not installed")
    fernet.Fernet(variables["AIRFLOW__CORE__FERNET_KEY"])


def test_file_has_no_default_for_a_secret() -> None:
    text = COMPOSE_FILE.read_text(encoding="utf-8")
    uses = re.findall(r"\$\{(\w+)(:?[-?+]?)", text)
    assert {name for name, rule in uses if rule == ":?"} == set(SECRETS)
    assert {rule for name, rule in uses if name in SECRETS} == {":?"}
    sensitive = re.compile(r"PASSWORD$|SECRET|FERNET_KEY|SQL_ALCHEMY_CONN")
    for body in read_raw()["services"].values():
        for key, value in body["environment"].items():
            assert not sensitive.search(key) or "${" in value, f"{key} is written out"


def test_images_are_pinned(services: dict[str, Service]) -> None:
    bases = [word[0] for path in DOCKERFILES for name, word in read_dockerfile(REPOSITORY / path) if name == "FROM"]
    images = [service.image for service in services.values()]
    assert len(bases) == len(DOCKERFILES)
    assert [image for image in [*bases, *images] if not PINNED.match(image)] == []


def test_long_running_services_have_a_health_check(services: dict[str, Service]) -> None:
    assert [name for name, service in services.items() if service.one_shot] == ["airflow-init"]
    assert [name for name, service in services.items() if not service.health and not service.one_shot] == []


def test_dependencies_wait_for_what_they_name(services: dict[str, Service]) -> None:
    for service in services.values():
        for other, condition in service.depends_on.items():
            expected = "service_completed_successfully" if services[other].one_shot else "service_healthy"
            assert condition == expected, f"{service.name} on {other}"


def test_ports_are_published_on_the_loopback_address_only() -> None:
    published = [port for body in read_raw()["services"].values() for port in body.get("ports", [])]
    assert published
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


def test_shared_volume_has_one_path_and_one_owner_everywhere(services: dict[str, Service]) -> None:
    root = services["airflow-scheduler"].environment["AIRFLOW__SPARKDDP__STORAGE_ROOT"]
    for name, body in read_raw()["services"].items():
        if name == "postgres":
            continue
        assert ("sparkddp-shared", root.removeprefix("file://")) in services[name].mounts, name
        assert body["user"] == "50000:0", name


def test_spark_connection_names_the_master_of_the_file(services: dict[str, Service]) -> None:
    connection = json.loads(services["airflow-scheduler"].environment["AIRFLOW_CONN_SPARK_DEFAULT"])
    master = connection["host"].removeprefix("spark://")
    assert connection["conn_type"] == "spark"
    assert connection["port"] in services[master].ports
    for worker in ("spark-worker-1", "spark-worker-2"):
        assert services[worker].argv[-1] == f"spark://{master}:{connection['port']}"


# --- Dockerfiles and what they run ---


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_copied_files_exist(dockerfile: str) -> None:
    sources = [
        source for name, words in read_dockerfile(REPOSITORY / dockerfile) if name == "COPY" for source in words[:-1]
    ]
    assert sources
    assert [source for source in sources if not (REPOSITORY / source).exists()] == []
    ignore = (REPOSITORY / f"{dockerfile}.dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = [line.removeprefix("!") for line in ignore if line.startswith("!")]
    assert [source for source in sources if not source.startswith(tuple(allowed))] == []


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_image_ends_as_an_ordinary_user(dockerfile: str) -> None:
    users = [words[0] for name, words in read_dockerfile(REPOSITORY / dockerfile) if name == "USER"]
    assert users[-1] not in ("root", "0")


def test_versions_agree_with_the_constraints(services: dict[str, Service]) -> None:
    constraints = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;#]+)", constraints, flags=re.MULTILINE))
    airflow_base, spark_base = (read_dockerfile(REPOSITORY / path)[0][1][0] for path in DOCKERFILES)
    assert f"-{pins['apache-airflow']}-python3.11" in airflow_base
    assert ":3.11." in spark_base
    assert services["airflow-scheduler"].image.endswith(f":{pins['apache-airflow']}")
    assert services["spark-master"].image.endswith(f":{pins['pyspark']}")
    assert pins["pyspark"] == pins["pyspark-client"]
    text = (REPOSITORY / DOCKERFILES[0]).read_text(encoding="utf-8")
    for name, version in re.findall(r"([\w-]+)==([\d.]+)", text):
        assert pins.get(name, version) == version, f"{name} differs between the image and constraints.txt"


def run_install(folder: Path, failing: str, torch_index: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run docker/install.sh with stand-ins for pip and python; return the result and the calls they got."""
    for program in ("pip", "python"):
        stand_in = folder / program
        stand_in.write_text(f'#!/bin/sh\necho "{program} $*" >> "$CALLS"\ncase "$*" in {failing}) exit 1;; esac\n')
        stand_in.chmod(0o755)
    calls = folder / "calls"
    (folder / "constraints.txt").write_text("torch==2.13.0\ntorchmetrics==1.9.0\n", encoding="utf-8")
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(calls), "TORCH_INDEX_URL": torch_index}
    command = ["bash", str(REPOSITORY / "docker/install.sh"), "all", "extra-package==1.0"]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return result, calls.read_text(encoding="utf-8").splitlines()


def test_images_install_the_cpu_build_of_torch_and_keep_to_the_constraints(tmp_path: Path) -> None:
    result, calls = run_install(tmp_path, failing="nothing", torch_index="https://index.example/cpu")
    assert result.returncode == 0, result.stderr
    assert calls[0] == "pip install --no-cache-dir --no-deps --index-url https://index.example/cpu torch==2.13.0+cpu"
    assert calls[1] == "pip install --no-cache-dir --constraint constraints.txt .[all] extra-package==1.0"


def test_image_build_says_what_to_do_without_the_cpu_build_of_torch(tmp_path: Path) -> None:
    result, calls = run_install(tmp_path, failing="*torch==*", torch_index="")
    assert result.returncode != 0
    assert INSTALL_HELP in result.stderr
    assert calls == ["pip install --no-cache-dir --no-deps torch==2.13.0+cpu"]


def load_health() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compose_health", REPOSITORY / "docker/health.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("document", "expectation", "healthy"),
    [
        ({"status": "ALIVE"}, "status=ALIVE", True),
        ({"status": "STANDBY"}, "status=ALIVE", False),
        ({"metadatabase": {"status": "healthy"}}, "metadatabase.status=healthy", True),
        ({"metadatabase": None}, "metadatabase.status=healthy", False),
        ({"masterurl": "spark://spark-master:7077"}, "masterurl", True),
        ({"masterurl": ""}, "masterurl", False),
        ([], "masterurl", False),
    ],
)
def test_health_check_looks_into_the_answer(document: object, expectation: str, healthy: bool) -> None:
    assert (load_health().find_problem(document, [expectation]) is None) is healthy


def test_interpolation_follows_compose() -> None:
    assert interpolate(["${A}", "${B:-b}", "$$A", "${A:-b}"], {"A": "a"}) == ["a", "b", "$A", "a"]
    with pytest.raises(MissingVariable, match="say so"):
        interpolate({"key": "${B:?say so}"}, {"B": ""})

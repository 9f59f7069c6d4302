"""Start the services of the compose file outside of Docker, in the order and on the conditions that it names."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import psutil

from tests.support.postgres import BINARIES as POSTGRES_BINARIES
from tests.support.postgres import become_unprivileged, free_ports

from .compose_file import REPOSITORY, Health, Service, read_copies

LOCALHOST = "127.0.0.1"
PGDATA = "/var/lib/postgresql/data"  # what the image sets
_PATHS = re.compile(r"/(?:opt|var)/[\w./-]+")
_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>


@dataclass(frozen=True)
class Outcome:
    """Whether a service came up, and if not, what there is to know about it."""

    service: str
    healthy: bool
    detail: str
    seconds: float = 0.0


@dataclass
class Localizer:
    """Translate what holds in a container to this machine: paths to a folder, host names and ports to free ones."""

    folder: Path
    services: Mapping[str, Service]
    ports: Mapping[tuple[str, int], int]

    def path(self, service: Service, path: str) -> str:
        """Return the local path of a path inside the service's container."""
        known: dict[str, Path] = read_copies(service.dockerfile) if service.dockerfile else {}
        for source, target in service.mounts:
            known[target] = REPOSITORY / source if source.startswith(".") else self.folder / "volumes" / source
        for target in sorted(known, key=len, reverse=True):
            if path == target or path.startswith(target + "/"):
                return str(known[target]) + path[len(target) :]
        return f"{self.folder}/containers/{service.name}{path}"

    def text(self, service: Service, text: str) -> str:
        """Return a word of the command or an environment value as it has to be here."""
        for name, port in sorted(self.ports, key=lambda key: -len(key[0])):
            text = re.sub(rf"(?<![\w-]){name}:{port}\b", f"{LOCALHOST}:{self.ports[name, port]}", text)
        for port in service.ports:
            text = re.sub(rf"(?<![\w.]){port}(?![\w.])", str(self.ports[service.name, port]), text)
        for name in sorted(self.services, key=len, reverse=True):
            text = re.sub(rf"(?<=//){name}(?![\w-])", LOCALHOST, text)
        text = _PATHS.sub(lambda match: self.path(service, match[0]), text)
        return text.replace("0.0.0.0", LOCALHOST)

    def argv(self, service: Service, argv: Sequence[str]) -> list[str]:
        """Return a command line as it has to be here. Its first word is a program, even if named like a host."""
        words = [LOCALHOST if word in self.services else self.text(service, word) for word in argv[1:]]
        return [argv[0], *words]

    def environment(self, service: Service) -> dict[str, str]:
        """Return the environment: what the image would set, then what the file sets; nothing else of this process."""
        path = [f"{sys.prefix}/bin", *map(str, POSTGRES_BINARIES[-1:]), os.environ.get("PATH", os.defpath)]
        image = {
            "PATH": os.pathsep.join(path),
            "HOME": self.path(service, "/home"),
            "LANG": "C.UTF-8",
            "PGDATA": self.path(service, PGDATA),
            "PYTHONDONTWRITEBYTECODE": "1",
            # A container has an address of its own; here all share the loopback one.
            "SPARK_LOCAL_IP": LOCALHOST,
        }
        if "JAVA_HOME" in os.environ:
            image["JAVA_HOME"] = os.environ["JAVA_HOME"]
        return image | {key: self.text(service, value) for key, value in service.environment.items()}


def tail(path: Path, lines: int = 40) -> str:
    """Return the end of a log."""
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


@dataclass
class Stack:
    """Services that run, or ran, on this machine."""

    localizer: Localizer
    budget_s: float
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def bring_up(self) -> dict[str, Outcome]:
        """Start every service once what it depends on is there, and wait until each is healthy or has failed."""
        services = self.localizer.services
        order = TopologicalSorter({name: set(service.depends_on) for name, service in services.items()})
        deadline = time.monotonic() + self.budget_s
        futures: dict[str, Future[Outcome]] = {}
        # Dependencies are submitted first and every service has a thread, so no waiting thread blocks another.
        with ThreadPoolExecutor(len(services)) as pool:
            for name in order.static_order():
                needed = [futures[other] for other in services[name].depends_on]
                futures[name] = pool.submit(self._start_after, services[name], needed, deadline)
        return {name: future.result() for name, future in futures.items()}

    def _start_after(self, service: Service, needed: list[Future[Outcome]], deadline: float) -> Outcome:
        missing = [outcome.service for outcome in (future.result() for future in needed) if not outcome.healthy]
        if missing:
            return Outcome(service.name, False, f"not started, for want of {missing}")
        started = time.monotonic()
        try:
            healthy, detail = self._start_and_watch(service, deadline)
        except (OSError, subprocess.TimeoutExpired) as error:
            healthy, detail = False, str(error)
        return Outcome(service.name, healthy, detail, time.monotonic() - started)

    def _start_and_watch(self, service: Service, deadline: float) -> tuple[bool, str]:
        for target in ["/home", *(target for _, target in service.mounts)]:
            Path(self.localizer.path(service, target)).mkdir(parents=True, exist_ok=True)
        options: dict[str, Any] = {"env": self.localizer.environment(service), "cwd": self.localizer.folder}
        if "POSTGRES_USER" in service.environment:
            options |= become_unprivileged()
            prepare_database(options, service.environment)
        log = self.localizer.folder / f"{service.name}.log"
        argv = self.localizer.argv(service, service.argv)
        with log.open("wb") as output:
            executable = find_program(argv[0], options["env"]["PATH"])
            process = subprocess.Popen(
                argv, executable=executable, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, **options
            )
        self.processes[service.name] = process
        if service.health is None:
            process.wait(timeout=max(1.0, deadline - time.monotonic()))
            return process.returncode == 0, f"exit status {process.returncode}\n{tail(log)}"
        answer = self._ask_until_healthy(process, service, service.health, options, deadline)
        return answer is None, f"{answer}\n{tail(log)}"

    def _ask_until_healthy(
        self,
        process: subprocess.Popen[bytes],
        service: Service,
        health: Health,
        options: dict[str, Any],
        deadline: float,
    ) -> str | None:
        """Run the health check until it succeeds; return what was wrong if it never does."""
        argv = self.localizer.argv(service, health.argv)
        executable = find_program(argv[0], options["env"]["PATH"])
        answer = "no health check ran"
        while time.monotonic() < deadline:
            try:
                # Ten times as often as in production; a process that ends meanwhile ends the wait.
                process.wait(timeout=health.interval_s / 10)
                return f"ended with status {process.returncode} before it was healthy"
            except subprocess.TimeoutExpired:
                pass
            try:
                check = subprocess.run(
                    argv, executable=executable, capture_output=True, timeout=health.timeout_s, check=False, **options
                )
            except subprocess.TimeoutExpired:
                answer = f"health check took longer than {health.timeout_s} s"
                continue
            if check.returncode == 0:
                return None
            answer = f"health check says {check.returncode}: {check.stderr.decode(errors='replace')[-500:]}"
        return answer

    def shut_down(self, grace_s: float = 15.0) -> None:
        """Stop the services, the last started first, as `docker stop` would."""
        for name, process in reversed(self.processes.items()):
            # The image of PostgreSQL asks for SIGINT: SIGTERM would wait for every client to leave.
            postgres = "POSTGRES_USER" in self.localizer.services[name].environment
            if process.poll() is None:
                process.send_signal(signal.SIGINT if postgres else signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        for process in self.processes.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def prepare_database(options: dict[str, Any], environment: Mapping[str, str]) -> None:
    """Do what the image of PostgreSQL does on an empty volume: initdb, the password, the database."""
    data = Path(options["env"]["PGDATA"])
    if "user" in options:
        os.chown(data, options["user"], options["group"])
    user, password, database = (environment[f"POSTGRES_{key}"] for key in ("USER", "PASSWORD", "DB"))

    def run(*argv: str, text: str | None = None) -> None:
        result = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=60, check=False, **options)
        if result.returncode != 0:
            raise OSError(f"{argv[0]} failed: {result.stderr[-1000:]}")

    def owned_file(path: Path, text: str) -> str:
        path.touch(mode=0o600)
        if "user" in options:
            os.chown(path, options["user"], options["group"])
        path.write_text(text, encoding="utf-8")
        return str(path)

    binaries = POSTGRES_BINARIES[-1]
    password_file = owned_file(data.parent / "password", password)
    run(f"{binaries}/initdb", "--username", user, "--pwfile", password_file, "--auth", "scram-sha-256", "--no-sync")
    with (data / "postgresql.conf").open("a", encoding="utf-8") as settings:
        settings.write("unix_socket_directories = ''\nfsync = off\n")
    run(f"{binaries}/postgres", "--single", "-j", "postgres", text=f'CREATE DATABASE "{database}";\n')


def find_program(name: str, path: str) -> str:
    """Return where a program lies; said here, since the system's own words vary with who may read which folder."""
    found = shutil.which(name, path=path)
    if found is None:
        raise FileNotFoundError(f"no such program: {name}")
    return found


def _started_since(before: set[psutil.Process]) -> set[psutil.Process]:
    """Return the children that are new, and all of theirs; what older children start is not ours to end."""
    new = {child for child in psutil.Process().children() if child not in before}
    for child in list(new):
        with suppress(psutil.NoSuchProcess):
            new.update(child.children(recursive=True))
    return new


@contextmanager
def no_process_left(patience_s: float = 5.0) -> Iterator[None]:
    """Adopt whatever is orphaned meanwhile, end what is left afterwards, and be sure that nothing is."""
    before = set(psutil.Process().children())
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _, stubborn = psutil.wait_procs(_started_since(before), timeout=patience_s)
        for process in stubborn:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        _, immortal = psutil.wait_procs(stubborn, timeout=10)
        libc.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        left = [*immortal, *_started_since(before)]
        if left:
            raise AssertionError(f"still running: {left}")


@contextmanager
def running(services: Mapping[str, Service], budget_s: float) -> Iterator[dict[str, Outcome]]:
    """Run the services for the time of the block; yield what became of each."""
    folder = Path(tempfile.mkdtemp(prefix="sparkddp-compose-"))
    folder.chmod(0o755)  # PostgreSQL's user has to get to its data below
    keys = [(name, port) for name, service in services.items() for port in service.ports]
    ports = dict(zip(keys, free_ports(len(keys)), strict=True))
    stack = Stack(Localizer(folder, services, ports), budget_s)
    try:
        with no_process_left():
            try:
                yield stack.bring_up()
            finally:
                stack.shut_down()
    finally:
        shutil.rmtree(folder)

"""A real PostgreSQL of the tests' own: on a free port of this computer, asking for a password, gone afterwards."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Where Debian's packages postgresql and libpostgresql-jdbc-java put them.
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
JAR = Path("/usr/share/java/postgresql.jar")


def missing() -> str | None:
    """What these tests need and this machine lacks, or None."""
    if not BINARIES:
        return "PostgreSQL's server is not installed (Debian's package postgresql)"
    if not JAR.exists():
        return f"{JAR} is missing (Debian's package libpostgresql-jdbc-java)"
    return None


@dataclass(frozen=True)
class Postgres:
    """A running server with one database. Nobody gets in without the password."""

    port: int
    host: str = "127.0.0.1"
    user: str = "reader"
    database: str = "warehouse"
    password: str = field(default_factory=lambda: secrets.token_urlsafe(16), repr=False)

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://{self.host}:{self.port}/{self.database}"

    def run(self, *statements: str) -> list[list[str]]:
        """The rows of all statements, as text. They are committed one by one."""
        given = [part for statement in statements for part in ("-c", statement)]
        ran = subprocess.run(
            [*self._psql(), *given], env=self._environment(), capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return [line.split("|") for line in ran.stdout.splitlines()]

    @contextmanager
    def gate(self, key: int) -> Iterator[None]:
        """Hold a lock for the time of the block: who asks for `pg_advisory_lock_shared(key)` meanwhile has to wait."""
        psql = subprocess.Popen(
            self._psql(), env=self._environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with psql:
            assert psql.stdin is not None
            assert psql.stdout is not None
            psql.stdin.write(f"SELECT pg_advisory_lock({key}), 'held';\n")
            psql.stdin.flush()
            assert psql.stdout.readline().strip() == "|held"
            yield

    def _psql(self) -> list[str]:
        where = ["-h", self.host, "-p", str(self.port), "-U", self.user, "-d", self.database]
        return [str(BINARIES[-1] / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", *where]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PGPASSWORD": self.password}


def become_unprivileged() -> dict[str, Any]:
    """Return the options that start a process as somebody other than root, whom PostgreSQL refuses."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise OSError("no unprivileged user to run PostgreSQL as")


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextmanager
def postgres(**settings: Any) -> Iterator[Postgres]:
    """A server from when it answers; stopped, and its files removed, afterwards."""
    server, someone = Postgres(*free_ports(1), **settings), become_unprivileged()
    # Not below pytest's folder, which other users may not enter.
    folder = Path(tempfile.mkdtemp(prefix="sparkddp-postgres-"))
    try:
        if someone:
            os.chown(folder, someone["user"], someone["group"])
        _initialize(server, folder, someone)
        options = f"-p {server.port} -c listen_addresses={server.host} -c unix_socket_directories='' -c fsync=off"
        _run(someone, "pg_ctl", "-D", folder / "data", "-o", options, "-l", folder / "log", "-w", "start")
        try:
            yield server
        finally:
            _run(someone, "pg_ctl", "-D", folder / "data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder)


def _initialize(server: Postgres, folder: Path, someone: dict[str, Any]) -> None:
    password = folder / "password"
    password.touch(mode=0o600)
    if someone:
        os.chown(password, someone["user"], someone["group"])
    password.write_text(server.password)
    known = ["--username", server.user, "--pwfile", password, "--auth", "scram-sha-256"]
    _run(someone, "initdb", "-D", folder / "data", *known, "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync")
    creation = f'CREATE DATABASE "{server.database}";\n'
    _run(someone, "postgres", "--single", "-D", folder / "data", "-j", "postgres", text=creation)


def _run(someone: dict[str, Any], program: str, *arguments: str | Path, text: str | None = None) -> None:
    command = [str(BINARIES[-1] / program), *map(str, arguments)]
    # Into a file: the server that pg_ctl starts would hold a pipe open for as long as it runs.
    with tempfile.TemporaryFile("w+") as said:
        ran = subprocess.run(
            command, input=text or "", text=True, stdout=said, stderr=said, timeout=120, cwd="/", check=False, **someone
        )
        said.seek(0)
        assert ran.returncode == 0, f"{program} failed: {said.read()[-2000:]}"

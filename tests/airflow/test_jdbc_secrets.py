"""The password of a database is nowhere to be seen: not while the task runs, and not in what it leaves.

Each place that is searched also holds a control word that the DAG put there: a search that could not find anything would fail.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from tests.airflow.conftest import Airflow, Ran
from tests.support.postgres import JAR, Postgres, free_ports, missing, postgres

pytestmark = [pytest.mark.slow, pytest.mark.skipif(missing() is not None, reason=str(missing()))]
FILE = Path(__file__).parent / "dags" / "database.py"
WORD = "control5wq2"
ENTRY = "sparkddp_main"
# What each password begins and ends with has to be escaped in one place or another; the middle stands there in any case.
PLANTED = ("plantedK7dY2right", "plantedK7dY2wrong")
RIGHT, WRONG = (f"%/ '\"{planted}&@\\" for planted in PLANTED)
GATE = 7
ROWS = 100


@dataclass
class Seen:
    """Place -> what was found there, each text once."""

    texts: dict[str, set[bytes]] = field(default_factory=dict)

    def add(self, place: str, text: str | bytes) -> None:
        self.texts.setdefault(place, set()).add(text if isinstance(text, bytes) else text.encode())

    def add_files(self, place: str, folder: Path, pattern: str) -> None:
        for path in folder.rglob(pattern):
            if path.is_file():
                self.add(place, str(path) + "\n")
                self.add(place, path.read_bytes())

    def add_processes(self, task: psutil.Process) -> None:
        """Command lines of all processes; environments of the job's: of what was started to run it, and all below.

        Airflow's own have the connection in their environment here, and so have small programs that its libraries start.
        """
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                self.add("command lines", "\n".join(process.cmdline()))
        for process in task.children(recursive=True):
            with suppress(psutil.Error, OSError):
                if any(ENTRY in argument for argument in process.cmdline()):
                    for each in (process, *process.children(recursive=True)):
                        self._add_environment(each)

    def _add_environment(self, process: psutil.Process) -> None:
        with suppress(psutil.Error, OSError):
            self.add("environments of the job's processes", "\n".join(map("=".join, process.environ().items())))


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    """A view of the control word's name, whose rows wait at the gate."""
    with postgres(password=RIGHT) as server:
        server.run(
            f"CREATE TABLE numbers AS SELECT i AS id, i * 0.5::float8 AS x FROM generate_series(1, {ROWS}) AS i",
            f"CREATE VIEW {WORD} AS SELECT numbers.* FROM numbers, (SELECT pg_advisory_lock_shared({GATE}) OFFSET 0) AS gate",
        )
        yield server


@pytest.fixture(scope="module")
def ran(airflow: Airflow, database: Postgres, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Seen]:
    folder, seen = tmp_path_factory.mktemp("planted"), Seen()
    (folder / "events").mkdir()
    [port] = free_ports(1)
    login = {"conn_type": "postgres", "host": database.host, "port": database.port, "schema": database.database}
    variables = {
        "AIRFLOW_CONN_WAREHOUSE": json.dumps({**login, "login": database.user, "password": RIGHT}),
        "AIRFLOW_CONN_LOCKED_OUT": json.dumps({**login, "login": database.user, "password": WRONG}),
        **{f"PLANTED_{k}": str(v) for k, v in {"WORD": WORD, "FOLDER": folder, "UI_PORT": port, "JAR": JAR}.items()},
    }
    with database.gate(GATE):
        process = airflow.start_dag(FILE, "database", variables)
        task = psutil.Process(process.pid)
        while process.poll() is None and not waits_at_the_gate(database):
            seen.add_processes(task)
        look_at_spark(seen, port)
    while process.poll() is None:
        seen.add_processes(task)
    done = airflow.ran("database")
    look_at_what_is_left(seen, done, airflow, folder)
    return done, seen


def waits_at_the_gate(database: Postgres) -> bool:
    return database.run(
        f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = {GATE} AND NOT granted"
    ) != [["0"]]


def look_at_spark(seen: Seen, port: int) -> None:
    """What the UI shows while the query runs: the pages for people, and what they are made of."""

    def get(path: str) -> bytes:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return bytes(answer.read())

    [application] = json.loads(get("/api/v1/applications"))
    for what in ("environment", "jobs", "stages", "executors", "sql?details=true&planDescription=true&length=1000"):
        seen.add("Spark's UI: REST", get(f"/api/v1/applications/{application['id']}/{what}"))
    executions = json.loads(get(f"/api/v1/applications/{application['id']}/sql?details=false"))
    pages = ["/jobs/", "/stages/", "/environment/", "/executors/", "/SQL/"]
    for page in [*pages, *(f"/SQL/execution/?id={each['id']}" for each in executions)]:
        seen.add("Spark's UI: pages", get(page))


def look_at_what_is_left(seen: Seen, done: Ran, airflow: Airflow, folder: Path) -> None:
    seen.add_files("job.json", folder, "job.json")
    seen.add_files("result.json", folder, "result.json")
    seen.add_files("the run directory", folder / WORD, "*")
    seen.add_files("the event log", folder / "events", "*")
    seen.add_files("Airflow's home", airflow.home, "*")
    seen.add_files("the metadata database", airflow.home, "airflow.db*")
    seen.add("the task's log", done.log)
    seen.add("XCom", json.dumps(done.outcome["xcoms"]))
    with closing(sqlite3.connect(airflow.home / "airflow.db")) as connection:
        for row in connection.execute(
            "SELECT rendered_fields FROM rendered_task_instance_fields WHERE dag_id = 'database'"
        ):
            seen.add("rendered fields", str(row))


PLACES = (
    "command lines",
    "environments of the job's processes",
    "Spark's UI: REST",
    "Spark's UI: pages",
    "the event log",
    "job.json",
    "result.json",
    "the run directory",
    "the task's log",
    "XCom",
    "rendered fields",
    "the metadata database",
    "Airflow's home",
)


@pytest.mark.parametrize("place", PLACES)
def test_no_password_is_found_where_the_control_word_is(place: str, ran: tuple[Ran, Seen]) -> None:
    texts = ran[1].texts[place]
    assert any(WORD.encode() in text for text in texts), f"{place}: the search finds nothing at all"
    for planted in PLANTED:
        assert not [text for text in texts if planted.encode() in text], place


def test_every_place_was_searched(ran: tuple[Ran, Seen]) -> None:
    assert set(ran[1].texts) == set(PLACES)
    assert any(ENTRY.encode() in line and b"java" in line for line in ran[1].texts["command lines"])
    assert any(b"JDBCRelation" in text for text in ran[1].texts["the event log"])
    assert any(b"JDBCRelation" in text for text in ran[1].texts["Spark's UI: pages"])


CARELESS = "import sys; print('up', flush=True); sys.stdin.read()"


def test_a_careless_process_would_be_found() -> None:
    seen, environment = Seen(), {"PGPASSWORD": PLANTED[1]}
    command = [sys.executable, "-c", CARELESS, ENTRY, PLANTED[0]]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as careless:
        assert careless.stdout is not None
        assert careless.stdout.readline() == b"up\n"
        seen.add_processes(psutil.Process())
        careless.kill()
    assert any(PLANTED[0].encode() in text for text in seen.texts["command lines"])
    assert any(PLANTED[1].encode() in text for text in seen.texts["environments of the job's processes"])


def test_the_rows_come_through(ran: tuple[Ran, Seen]) -> None:
    assert ran[0].task("reads") == "success", ran[0].log_of("reads")[-3000:]
    assert sum(ran[0].xcom("reads")["total_rows"].values()) == ROWS


FAILURES = {
    "missing_table": ("SDDP-203", f'relation "no_{WORD}" does not exist'),
    "wrong_password": ("SDDP-203", "password authentication failed"),
    "no_connection": ("SDDP-112", "jdbc_conn_id='not_defined' is not defined"),
}


@pytest.mark.parametrize("task_id", FAILURES)
def test_a_user_reads_what_is_wrong_with_the_database(task_id: str, ran: tuple[Ran, Seen]) -> None:
    code, words = FAILURES[task_id]
    log = ran[0].log_of(task_id)
    assert ran[0].task(task_id) == "failed"
    assert f"[{code}]" in log
    assert words in log

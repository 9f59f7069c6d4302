"""`make demo`: the example DAG by `airflow dags test` on an embedded Spark, everything in .demo, then what came out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".demo"
# What of Airflow's log a person wants to see meanwhile: `… [info     ] message [logger] loc=…`.
LINE = re.compile(r"^\S+ \[(?P<level>\w+) *\] (?P<message>.*?) *\[[\w.]+\] loc=")
STARTS = re.compile(r"\[DAG TEST\] starting task_id=(\w+)")
MARKS = ("epoch ", "First training step", "Done in ", "[SDDP-")


def environment() -> dict[str, str]:
    """Airflow's home, a Spark connection to an embedded Spark, and nothing of another Airflow on this computer."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW")}
    storage = (HOME / "storage").as_uri()
    return {
        **inherited,
        "AIRFLOW_HOME": str(HOME / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags" / "examples"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__SPARKDDP__STORAGE_ROOT": storage,
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "ignore",
        # For programs of seconds: a quick start of Java counts, its best code doesn't; and nobody looks at Spark's UI.
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.ui.enabled=false",
    }


def main() -> int:
    started, env = time.monotonic(), environment()
    airflow = str(Path(sys.executable).parent / "airflow")
    (HOME / "airflow").mkdir(parents=True, exist_ok=True)
    log_path = HOME / "demo.log"
    with log_path.open("w") as log:
        if not (HOME / "airflow" / "airflow.db").exists():
            print("Preparing Airflow's database (once) …", flush=True)
            subprocess.run([airflow, "db", "migrate"], env=env, stdout=log, stderr=subprocess.STDOUT, check=True)
        print(f"Running the DAG flight_delay: partition, train, export, validate (whole log: {log_path})", flush=True)
        status = run_dag([airflow, "dags", "test", "flight_delay"], env, log)
    print(f"\n{time.monotonic() - started:.0f} s")
    return status or show()


def run_dag(command: list[str], env: dict[str, str], log: object) -> int:
    """Run the DAG; show the log's telling lines as they come."""
    process = subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    assert process.stdout is not None
    for line in process.stdout:
        log.write(line)  # type: ignore[attr-defined]
        told = telling(line)
        if told:
            print(told, flush=True)
    return process.wait()


def telling(line: str) -> str | None:
    """What to show of a line of the log: a task's start, its progress, its end, an error."""
    found = LINE.match(line)
    message = found["message"] if found else line.strip()
    started = STARTS.search(message)
    if started:
        return f"{started[1]} …"
    shown = message.startswith(MARKS) and not message.startswith("epoch   ")
    return f"  {message[:400]}" if shown or "[SDDP-" in message else None


def show() -> int:
    """The newest validation's summary."""
    results = sorted(
        (HOME / "storage" / "flight_delay").glob("*/validate/*/*/result.json"), key=lambda p: p.stat().st_mtime
    )
    if not results:
        print(f"The DAG left no verdict; see {HOME / 'demo.log'}")
        return 1
    body = json.loads(results[-1].read_text())["body"]
    failure = body["failure"]
    print("\n".join(["", *(body["summary"] or [failure["message"]]), ""]))
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs a DAG by `dag.test()` in a process of its own, and says what came of it as JSON. Manual, without a logical date."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any


def load(file: str, dag_id: str) -> Any:
    """The DAG of a file, imported as Airflow does: under a name of its own, its folder on the path."""
    sys.path.insert(0, str(Path(file).parent))
    spec = importlib.util.spec_from_file_location("dag_under_test", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return next(
        value for value in vars(module).values() if getattr(value, "dag_id", None) == dag_id and hasattr(value, "test")
    )


def outcome(run: Any) -> dict[str, Any]:
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        tasks = {f"{ti.task_id}[{ti.map_index}]": str(ti.state) for ti in run.get_task_instances(session=session)}
        rows = session.query(XComModel).filter_by(run_id=run.run_id, key="return_value").all()
        events = session.query(AssetEvent).filter_by(source_run_id=run.run_id).all()
        assets = {asset.id: asset.name for asset in session.query(AssetModel).all()}
        told = [{"asset": assets[e.asset_id], "task": e.source_task_id, "extra": e.extra} for e in events]
        values = {f"{row.task_id}[{row.map_index}]": XComModel.deserialize_value(row) for row in rows}
    return {
        "state": str(run.state),
        "run_id": run.run_id,
        "logical_date": str(run.logical_date),
        "tasks": tasks,
        "xcoms": values,
        "asset_events": told,
    }


def main() -> None:
    file, dag_id, out, conf = sys.argv[1:]
    run = load(file, dag_id).test(run_conf=json.loads(conf), logical_date=None)
    Path(out).write_text(json.dumps(outcome(run), default=str))


if __name__ == "__main__":
    main()

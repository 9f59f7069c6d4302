"""A Spark table becomes Parquet partitions and a manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_sparkddp.operators.base import OnSpark
from airflow_provider_sparkddp.spec import jobs
from airflow_provider_sparkddp.spec.jobs import CodeRef


class PartitionToParquetOperator(OnSpark):
    """Write a source as Parquet, balanced by rows for the ranks of a training, with a manifest that says who reads what.

    The XCom is `{"manifest": uri, "files": [relative names], "rows": {split: [rows of each rank]}, …}`.

    Args:
        source: one of `{"format": …, "path": …, "options": {…}}`, `{"table": …}`, `{"sql": …}`,
            `{"callable": "pkg.mod:fn", "kwargs": {…}}` with `fn(spark, **kwargs) -> DataFrame`. (templated)
        num_nodes: as Lightning's: `num_nodes * devices` ranks. (templated)
        devices: ranks a node, one Spark task each. (templated)
        columns: columns to keep; default all. (templated)
        validation: share of rows to hold out (by a hash of the row), `{"after": {"column": …, "value": …}}` (rows whose column is
            greater than the value), `{"column": …}` (a boolean column, which is then left out), or None. (templated)
        seed: of the split and of everything that the training shuffles. (templated)
        run_dir: absolute URI of storage shared by the Airflow worker, the driver and the executors; default
            `[sparkddp] storage_root` / DAG id / run. (templated)
        cpus_per_rank: `spark.task.cpus`. (templated)
        executors_timeout: seconds to wait for executors; default 20 on local and standalone masters, 300 elsewhere. (templated)
        group_by, order_by, storage_conn_id: refused until they are built.

    Raises:
        SparkDDPError: while the DAG is parsed, with a code of docs/reference/errors.md.
    """

    kind = jobs.PARTITION
    template_fields: Sequence[str] = (*OnSpark.template_fields, *jobs.ARGUMENTS[jobs.PARTITION])
    ui_color = "#d9ead3"

    def __init__(
        self,
        *,
        source: Mapping[str, Any],
        num_nodes: int | str = 1,
        devices: int | str = 1,
        columns: Sequence[str] | None = None,
        group_by: Any = None,
        order_by: Any = None,
        validation: Any = 0.1,
        seed: int | str = 0,
        run_dir: str | None = None,
        storage_conn_id: str | None = None,
        cpus_per_rank: int | str | None = None,
        executors_timeout: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.num_nodes = num_nodes
        self.devices = devices
        self.columns = columns
        self.group_by = group_by
        self.order_by = order_by
        self.validation = validation
        self.seed = seed
        self.run_dir = run_dir
        self.storage_conn_id = storage_conn_id
        self.cpus_per_rank = cpus_per_rank
        self.executors_timeout = executors_timeout
        self.check_known()

    def settings(self, checked: dict[str, Any]) -> tuple[dict[str, Any], tuple[CodeRef, ...]]:
        return checked, ()

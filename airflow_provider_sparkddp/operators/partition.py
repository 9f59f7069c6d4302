"""A Spark table becomes Parquet partitions and a manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_sparkddp.hooks.jdbc import jdbc_secrets
from airflow_provider_sparkddp.operators.base import OnSpark, storage_root
from airflow_provider_sparkddp.spec import jobs
from airflow_provider_sparkddp.spec.jobs import CodeRef


class PartitionToParquetOperator(OnSpark):
    """Write a source as Parquet, balanced for the ranks of a training, with a manifest that says who reads what.

    The XCom is `{"manifest": uri, "files": [relative names], "rows": {split: [rows of each rank]}, …}`, and a pointer to the
    manifest alone where that would be large.

    Args:
        source: one of `{"format": …, "path": …, "options": {…}}` (a path or a list; parquet, csv, json, orc, or what the driver has
            a package for; `"schema"` of csv and json as in CREATE TABLE; `"tolerate"` what is wrong with them), `{"table": …}`,
            `{"sql": …}`, `{"callable": "pkg.mod:fn", "kwargs": {…}}` with `fn(spark, **kwargs) -> DataFrame`, or
            `{"jdbc_conn_id": …, "table" or "query": …}` with `partition_column`, `lower_bound`, `upper_bound`, `num_partitions` to
            read in parallel, and `fetch_size`. (templated)
        num_nodes: as Lightning's: `num_nodes * devices` ranks. (templated)
        devices: ranks a node, one Spark task each. (templated)
        columns: columns to keep, or name -> SQL expression; default all. (templated)
        where: SQL condition: which rows to keep; it sees what `columns` makes. (templated)
        sample: share of rows to keep for a quick trial, by a hash of the row. (templated)
        limit: most rows to keep for a quick trial. (templated)
        shuffle: False where the rows lie in random order already: they are written as they lie, without an exchange. (templated)
        group_by: column or columns whose groups stay whole in one rank. (templated)
        order_by: column or columns that sort the rows of a group. (templated)
        validation: share of rows to hold out (by a hash of the row, or of the group), `{"after": {"column": …, "value": …}}` (rows
            whose column is greater than the value), `{"last_per_group": rows}`, `{"column": …}` (a boolean column, which is then left
            out), or None. (templated)
        test: as `validation`: rows that no training sees; the validation task judges by them. (templated)
        seed: of the splits and of everything that the training shuffles. (templated)
        encode: column -> `"index"` (a string becomes its place in a vocabulary of at most 100,000, 0 for an unknown one) or
            `"standardize"` (minus the mean, divided by the standard deviation): fitted on training rows, kept in the manifest and in
            the model. (templated)
        files_per_rank: Parquet files a rank and split. (templated)
        row_group_rows: most rows of a row group: what a reader holds in memory at a time; default 131,072. (templated)
        compression: `snappy`, or `zstd`, which took 8 % less space and 9 % more time where it was measured. (templated)
        writer: `spark`, `arrow` (executors write through pyarrow and fsspec), or `auto`: arrow where Spark has no jar for the
            storage's scheme. (templated)
        compare_with: an earlier manifest, or a partition task's output: differences of schema and values are shown. (templated)
        drift: gates on them: `{"schema": True, "new_categories": True, "max_mean_shift": 0.5}` (in standard deviations). (templated)
        reuse: return the earlier manifest when source, settings and code are unchanged. (templated)
        fingerprint: what stands for the source's state, with `reuse`, where files don't tell it. (templated)
        retention: days after which partitions of this task's earlier runs are removed, unless somebody reads them; default never.
            (templated)
        run_dir: absolute URI of storage shared by the Airflow worker, the driver and the executors; default
            `[sparkddp] storage_root` / DAG id / run. (templated)
        cpus_per_rank: `spark.task.cpus`. (templated)
        executors_timeout: seconds to wait for executors; default 20 on local and standalone masters, 300 elsewhere. (templated)
        storage_conn_id: refused until it is built.

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
        columns: Sequence[str] | Mapping[str, str] | str | None = None,
        where: str | None = None,
        sample: float | str | None = None,
        limit: int | str | None = None,
        shuffle: bool | str = True,
        group_by: str | Sequence[str] | None = None,
        order_by: str | Sequence[str] | None = None,
        validation: Any = 0.1,
        test: Any = None,
        seed: int | str = 0,
        encode: Mapping[str, str] | None = None,
        files_per_rank: int | str = 1,
        row_group_rows: int | str = jobs.ROW_GROUP_ROWS,
        compression: str = "snappy",
        writer: str = "auto",
        compare_with: Any = None,
        drift: Mapping[str, Any] | None = None,
        reuse: bool | str = False,
        fingerprint: str | None = None,
        retention: float | str | None = None,
        run_dir: str | None = None,
        storage_conn_id: str | None = None,
        cpus_per_rank: int | str | None = None,
        executors_timeout: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # Airflow wants each templated field set by its own name.
        given = locals()
        for name in jobs.ARGUMENTS[jobs.PARTITION]:
            setattr(self, name, given[name])
        self.check_known()

    def settings(self, checked: dict[str, Any]) -> tuple[dict[str, Any], tuple[CodeRef, ...]]:
        # Where what may be reused is found again: for all DAG runs the same.
        return {**checked, "storage_root": storage_root(otherwise=checked["run_dir"])}, ()

    def secrets(self, settings: Mapping[str, Any]) -> dict[str, str]:
        conn_id = settings["source"].get("jdbc_conn_id")
        return jdbc_secrets(conn_id) if conn_id else {}

"""Partitions of a database's table. The control word stands in every place in which the password must not be found."""

from __future__ import annotations

import os

from airflow.providers.common.compat.sdk import DAG

from airflow_provider_sparkddp.operators import PartitionToParquetOperator

WORD, FOLDER, UI_PORT, JAR = (os.environ[f"PLANTED_{name}"] for name in ("WORD", "FOLDER", "UI_PORT", "JAR"))
ON_SPARK = {
    "run_dir": f"file://{FOLDER}/{WORD}",
    "jars": JAR,
    "env_vars": {"PLANTED_ON_SPARK": WORD},
    "conf": {
        "spark.planted.word": WORD,
        "spark.ui.port": UI_PORT,
        "spark.sql.ui.explainMode": "extended",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{FOLDER}/events",
    },
}

with DAG("database", schedule=None) as database:
    PartitionToParquetOperator(
        task_id="reads",
        source={"jdbc_conn_id": "{{ 'warehouse' }}", "table": WORD},
        columns=["id", "x"],
        **ON_SPARK,
    )
    PartitionToParquetOperator(
        task_id="missing_table", source={"jdbc_conn_id": "warehouse", "table": f"no_{WORD}"}, **ON_SPARK
    )
    PartitionToParquetOperator(
        task_id="wrong_password", source={"jdbc_conn_id": "locked_out", "table": WORD}, **ON_SPARK
    )
    PartitionToParquetOperator(
        task_id="no_connection", source={"jdbc_conn_id": "not_defined", "table": WORD}, **ON_SPARK
    )

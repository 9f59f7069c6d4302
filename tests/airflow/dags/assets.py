"""The line with assets in its outlets, and a partition that is made again."""

from __future__ import annotations

import os

from airflow.providers.common.compat.sdk import DAG, Asset

from airflow_provider_sparkddp.operators import (
    ModelExportOperator,
    ModelValidationOperator,
    PartitionToParquetOperator,
    SparkDDPTrainOperator,
)

STORAGE = os.environ["AIRFLOW__SPARKDDP__STORAGE_ROOT"]
SPARK = {"py_files": ["line_models.py"], "conf": {"spark.ui.enabled": "false"}}

with DAG("assets", schedule=None) as assets:
    partition = PartitionToParquetOperator(
        task_id="partition",
        source={"callable": "line_models:rows"},
        num_nodes=2,
        validation=0.2,
        outlets=[Asset("flights_partitioned"), Asset("s3://bucket/flights")],
        **SPARK,
    )
    train = SparkDDPTrainOperator(
        task_id="train",
        partitions=partition.output,
        model="line_models:Line",
        features=["a", "b"],
        target="y",
        alias="two_lines",
        trainer={"max_epochs": 2},
        outlets=Asset("trained"),
        **SPARK,
    )
    export = ModelExportOperator(
        task_id="export", model=train.output, destination=f"{STORAGE}/models/assets", outlets=[Asset("exported")]
    )
    ModelValidationOperator(
        task_id="validate", model=export.output, data=partition.output, outlets=[Asset("validated")]
    )

with DAG("again", schedule=None) as again:
    PartitionToParquetOperator(
        task_id="partition",
        source={"callable": "line_models:rows", "kwargs": {"count": 50}},
        reuse=True,
        fingerprint="{{ dag_run.conf['version'] }}",
        **SPARK,
    )

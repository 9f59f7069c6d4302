"""The line with everything on an object store, which it knows by the environment alone; `s3a` is another spelling of `s3`."""

from __future__ import annotations

import os

from airflow.providers.common.compat.sdk import DAG

from airflow_provider_sparkddp.operators import (
    ModelExportOperator,
    ModelValidationOperator,
    PartitionToParquetOperator,
    SparkDDPTrainOperator,
)

STORAGE = os.environ["AIRFLOW__SPARKDDP__STORAGE_ROOT"]
ROWS = {"callable": "line_models:rows"}
ON_SPARK = {"py_files": ["line_models.py"], "conf": {"spark.ui.enabled": "false"}}

with DAG("on_s3", schedule=None) as on_s3:
    partition = PartitionToParquetOperator(
        task_id="partition", source=ROWS, num_nodes=2, validation=0.2, row_group_rows=50, **ON_SPARK
    )
    train = SparkDDPTrainOperator(
        task_id="train",
        partitions=partition.output,
        run_dir=f"{STORAGE}/trainings".replace("s3://", "s3a://"),
        model="line_models:Line",
        alias="on_s3",
        features=["a", "b"],
        target="y",
        batch_size=16,
        trainer={"max_epochs": 2, "enable_model_summary": False},
        **ON_SPARK,
    )
    export = ModelExportOperator(
        task_id="export", model=train.output, destination=f"{STORAGE}/models/on s3".replace("s3://", "s3a://")
    )
    ModelValidationOperator(
        task_id="validate", model=export.output, data=partition.output, metrics={"mae": {"max": 1000}}
    )

with DAG("on_s3_errors", schedule=None) as errors:
    PartitionToParquetOperator(task_id="no_bucket", source=ROWS, run_dir="s3://no-such-bucket/runs", **ON_SPARK)
    PartitionToParquetOperator(task_id="no_jar", source=ROWS, writer="spark", **ON_SPARK)

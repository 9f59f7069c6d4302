"""The line on a small table, its mapped copies, and the errors that a user meets: each task id says what is wrong with it."""

from __future__ import annotations

import datetime
import os

from airflow.providers.common.compat.sdk import DAG, Param

from airflow_provider_sparkddp.operators import (
    ModelExportOperator,
    ModelValidationOperator,
    PartitionToParquetOperator,
    SparkDDPTrainOperator,
)

STORAGE = os.environ["AIRFLOW__SPARKDDP__STORAGE_ROOT"]
CODE = ["line_models.py"]
ROWS = {"callable": "line_models:rows"}
TRAIN = {
    "model": "line_models:Line",
    "features": ["a", "b"],
    "target": "y",
    "py_files": CODE,
    "conf": {"spark.ui.enabled": "false"},
}
PARTITION = {"py_files": CODE, "conf": {"spark.ui.enabled": "false"}}

with DAG(
    "line",
    schedule=None,
    params={
        "epochs": Param(2, type="integer"),
        "learning_rate": Param(0.05, type="number"),
        "bias": Param(False, type="boolean"),
    },
) as line:
    partition = PartitionToParquetOperator(task_id="partition", source=ROWS, num_nodes=2, validation=0.2, **PARTITION)
    train = SparkDDPTrainOperator(
        task_id="train",
        partitions=partition.output,
        alias="two_lines",
        model_kwargs={"learning_rate": "{{ params.learning_rate }}", "bias": "{{ params.bias }}"},
        trainer={"max_epochs": "{{ params.epochs }}", "enable_model_summary": "False"},
        batch_size="{{ '16' }}",
        **TRAIN,
    )
    export = ModelExportOperator.partial(task_id="export", model=train.output).expand(
        destination=[f"{STORAGE}/models/{name}" for name in ("one", "two")]
    )
    manifest = "{{ ti.xcom_pull(task_ids='partition')['manifest'] }}"
    gate_too_high = ModelValidationOperator(
        task_id="gate_too_high",
        model="{{ ti.xcom_pull(task_ids='train') }}",
        data=manifest,
        metrics={"mae": {"max": "{{ 0.0000001 }}"}},
    )
    untrusted = ModelValidationOperator(
        task_id="untrusted_class", model="{{ ti.xcom_pull(task_ids='train')['model'] }}", data=manifest
    )
    train >> [gate_too_high, untrusted]
    names_a_string = SparkDDPTrainOperator(
        task_id="feature_is_text", partitions=manifest, **{**TRAIN, "features": ["a", "{{ 's' }}"]}
    )
    not_there = SparkDDPTrainOperator(
        task_id="feature_not_there", partitions=manifest, **{**TRAIN, "features": ["a", "{{ 'c' }}"]}
    )
    stumbles = SparkDDPTrainOperator(
        task_id="a_rank_raises", partitions=partition.output, **{**TRAIN, "model": "line_models:Stumbles"}
    )
    too_many = SparkDDPTrainOperator(task_id="too_few_slots", partitions=partition.output, num_nodes=3, **TRAIN)
    partition >> [names_a_string, not_there]

with DAG("errors", schedule=None) as errors:
    PartitionToParquetOperator(task_id="no_connection", conn_id="not_defined", source=ROWS, **PARTITION)
    PartitionToParquetOperator(task_id="not_a_number", source=ROWS, num_nodes="{{ 'many' }}", **PARTITION)
    PartitionToParquetOperator(
        task_id="dynamic_allocation", source=ROWS, py_files=CODE, conf={"spark.dynamicAllocation.enabled": "{{ true }}"}
    )
    PartitionToParquetOperator(task_id="code_not_there", source=ROWS, py_files=["{{ 'nowhere.py' }}"])
    PartitionToParquetOperator(task_id="storage_not_writable", source=ROWS, run_dir="file:///dev/null/run", **PARTITION)
    PartitionToParquetOperator(task_id="empty_source", source={**ROWS, "kwargs": {"count": 0}}, **PARTITION)
    SparkDDPTrainOperator(task_id="no_manifest", partitions="file:///nowhere/at/all/manifest.json", **TRAIN)
    PartitionToParquetOperator(
        task_id="takes_too_long",
        source={"callable": "line_models:never"},
        execution_timeout=datetime.timedelta(seconds=15),
        **PARTITION,
    )

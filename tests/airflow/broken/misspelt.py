"""A DAG with a misspelt Trainer argument."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import DAG

from airflow_provider_sparkddp.operators import SparkDDPTrainOperator

with DAG("misspelt", schedule=None):
    SparkDDPTrainOperator(
        task_id="train",
        partitions="file:///shared/manifest.json",
        model="models:Line",
        features=["a"],
        target="y",
        trainer={"max_epoch": 3},
    )

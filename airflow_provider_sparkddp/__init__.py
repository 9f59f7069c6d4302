"""Airflow provider that trains PyTorch Lightning models by DDP on Spark. No imports here: this also runs on the cluster."""

__version__ = "0.1.0"

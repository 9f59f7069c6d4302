"""What Airflow discovers of this provider, through the entry point `apache_airflow_provider`."""

from __future__ import annotations

from typing import Any

from airflow_provider_sparkddp import __version__


def get_provider_info() -> dict[str, Any]:
    return {
        "package-name": "airflow-provider-sparkddp",
        "name": "Spark DDP",
        "description": "A Spark table becomes a trained, exported, proven PyTorch Lightning model.",
        "versions": [__version__],
        "integrations": [
            {
                "integration-name": "Spark DDP",
                "external-doc-url": "https://lightning.ai/docs/pytorch/stable/",
                "tags": ["software"],
            }
        ],
        "operators": [
            {
                "integration-name": "Spark DDP",
                "python-modules": [
                    f"airflow_provider_sparkddp.operators.{name}"
                    for name in ("partition", "train", "export", "validate")
                ],
            }
        ],
        "config": {
            "sparkddp": {
                "description": "Settings of the Spark DDP provider.",
                "options": {
                    "storage_root": {
                        "description": (
                            "Absolute URI of the storage that Airflow's workers, Spark's drivers and all executors share; run "
                            "directories lie below it. Default: the folder sparkddp in AIRFLOW_HOME, which suits a local master."
                        ),
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "s3://bucket/sparkddp",
                        "default": "",
                    }
                },
            }
        },
    }

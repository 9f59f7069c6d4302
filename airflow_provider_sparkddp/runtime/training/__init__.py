"""One rank's training. Hardware, strategy and precision are separate seams; `trainer.py` is the only file that knows them all.

`spark_environment` is for barrier code of one's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_sparkddp.runtime.training.own_barrier import spark_environment as spark_environment

__all__ = ["spark_environment"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from airflow_provider_sparkddp.runtime.training import own_barrier

        return getattr(own_barrier, name)
    raise AttributeError(name)

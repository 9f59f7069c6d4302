"""Models free of their trainer: JSON and safetensors, loaded without unpickling, by an allow-list of modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_sparkddp.runtime.models.load import LoadedModel as LoadedModel
    from airflow_provider_sparkddp.runtime.models.load import load_model as load_model

__all__ = ["LoadedModel", "load_model"]


def __getattr__(name: str) -> Any:
    # torch is imported when somebody loads a model, not before.
    if name in __all__:
        from airflow_provider_sparkddp.runtime.models import load

        return getattr(load, name)
    raise AttributeError(name)

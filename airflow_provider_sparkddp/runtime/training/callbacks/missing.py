"""A monitor that nobody logs is told with what is logged."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_sparkddp.spec.errors import SparkDDPError, nearest


def require_logged(monitor: str, argument: str, logged: Iterable[str]) -> None:
    """Raises SparkDDPError SDDP-410 when the name is not among the logged ones."""
    names = sorted(logged)
    if monitor not in names:
        raise SparkDDPError(
            "SDDP-410",
            f"{argument} monitors {monitor!r}, which is not logged by the end of the first validation. "
            f"Logged: {', '.join(names) or 'nothing'}.",
            f"{nearest(monitor, names)}Monitor one of these, or log it by self.log({monitor!r}, …) in validation_step.",
        )

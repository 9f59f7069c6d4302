"""How long a training still takes, from its pace; pure."""

from __future__ import annotations

from collections.abc import Sequence


def seconds_left(
    elapsed: float, limits: Sequence[tuple[float, float]], until_max_time: float | None = None
) -> float | None:
    """Seconds until the first of the limits is reached; None when nothing tells. It may end earlier, as early stopping does.

    Args:
        elapsed: seconds of training so far.
        limits: (done since it began, in all since it began) of what limits it, such as epochs and steps.
        until_max_time: seconds left of `max_time`.
    """
    left = [elapsed * max(total - done, 0.0) / done for done, total in limits if done > 0]
    left += [max(until_max_time, 0.0)] if until_max_time is not None else []
    return min(left, default=None)

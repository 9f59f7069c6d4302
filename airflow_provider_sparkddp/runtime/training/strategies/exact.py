"""What every strategy gets on top, Lightning's own and a user's: means over the ranks that are not truncated."""

from __future__ import annotations

import functools
from typing import Any


def exact(strategy: Any) -> Any:
    """The same strategy, with exact means.

    Lightning truncates an integer's mean over ranks, as the row counts of logged metrics are (its issue 21859).
    """
    its_own = strategy.reduce

    @functools.wraps(its_own)
    def reduce(tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
        integers = hasattr(tensor, "is_floating_point") and not tensor.is_floating_point()
        if integers and isinstance(reduce_op, str) and reduce_op.lower() in ("mean", "avg"):
            tensor = tensor.double()
        return its_own(tensor, group, reduce_op)

    strategy.reduce = reduce
    return strategy

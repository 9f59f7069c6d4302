"""Whether a training can learn at all: an optimizer, and under plain ddp a gradient for each parameter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from airflow_provider_sparkddp.spec.errors import SparkDDPError

NAMED = 5
DDP_SAYS = re.compile(r"Parameter indices which did not receive grad for rank \d+: ([\d ]+)")


class Learning:
    """Looks when the training starts, and after each backward whose gradients are averaged.

    Attributes:
        parameters: (name, parameter) of those that train, in the order in which DDP counts them.
        unused: names of those that DDP waited for in vain, as it says in the next step.
    """

    def __init__(self) -> None:
        self.parameters: list[tuple[str, Any]] = []
        self.unused: list[str] = []
        self.waits = False  # for the gradients of all parameters

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        model = trainer.model
        ignored = getattr(model, "parameters_to_ignore", ())
        self.parameters = [(n, p) for n, p in module.named_parameters() if p.requires_grad and n not in ignored]
        # Attributes of torch's DistributedDataParallel.
        self.waits = not (getattr(model, "find_unused_parameters", True) or model.static_graph)

    def on_train_start(self, trainer: Any, module: Any) -> None:
        # Lightning puts an optimizer that does nothing in the place of None.
        nothing = all(type(each).__name__ == "_MockOptimizer" for each in trainer.optimizers)
        if module.automatic_optimization and nothing:
            raise SparkDDPError(
                "SDDP-413",
                f"{type(module).__name__}.configure_optimizers returned None: nothing would be trained.",
                "Return an optimizer, such as torch.optim.Adam(self.parameters()).",
            )

    def on_after_backward(self, trainer: Any, module: Any) -> None:
        if not self.waits or not trainer.model.require_backward_grad_sync:
            return
        # With manual optimisation a later backward may be of one optimizer alone.
        self.waits = module.automatic_optimization
        unused = [name for name, parameter in self.parameters if parameter.grad is None]
        if unused:
            raise unused_parameters(unused, len(self.parameters), trainer.global_rank)

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        # Lightning replaces DDP's text, which has the numbers, after this.
        if found := DDP_SAYS.search(str(exception)):
            self.unused = [self.parameters[int(index)][0] for index in found[1].split()]


def unused_parameters(names: Sequence[str], of: int, rank: int) -> SparkDDPError:
    """The error of a model whose loss doesn't reach these parameters on a rank."""
    listed = ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
    return SparkDDPError(
        "SDDP-411",
        f"on rank {rank} the loss gives {len(names)} of {of} parameters no gradient, and ddp waits for all: {listed}.",
        "Let the loss use them, or freeze them by requires_grad_(False); "
        "if they are unused at times, set trainer={'strategy': 'ddp_find_unused_parameters_true'}.",
    )

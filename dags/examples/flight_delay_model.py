"""Model of the flight delay example: minutes of arrival delay from what is known when the flight departs."""

from __future__ import annotations

import math

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.nn import functional as F

# Fixed typical values and spreads of dep_delay, sched_dep_hour, sched_minutes and distance. Constants, not
# statistics of the rows at hand: each rank holds other rows, and all ranks must compute the same function.
_CENTRE = (12.0, 13.0, 150.0, 1050.0)
_SPREAD = (40.0, 5.0, 80.0, 730.0)

_CORRECTION_MINUTES = 10.0
"""Minutes that one unit of the network's output stands for: the size of the corrections to learn."""


class DelayRegressor(pl.LightningModule):
    """Predicts the delay at arrival as the delay at departure plus a learned correction.

    A batch is ``(x, y)``. ``x`` is float32 of shape (B, 9), its columns ``dep_delay`` (minutes), ``sched_dep_hour``
    (hours), ``sched_minutes`` (minutes), ``distance`` (miles), ``month`` (1 to 12), ``day_of_week`` (0 to 6),
    ``carrier_code``, ``origin_code`` and ``dest_code``. ``y`` is float32 of shape (B,), minutes late at arrival.
    """

    def __init__(
        self,
        learning_rate: float = 0.01,
        hidden: int = 64,
        n_carriers: int = 16,
        n_origins: int = 3,
        n_dests: int = 104,
    ) -> None:
        """Build the network: ``hidden`` units in each of two layers, ``n_...`` codes of each kind."""
        super().__init__()
        self.save_hyperparameters()
        self.learning_rate = learning_rate
        # Rows and width of one table for each of the last four columns of x.
        sizes = ((7, 3), (n_carriers, 6), (n_origins, 2), (n_dests, 8))
        self.embeddings = nn.ModuleList(nn.Embedding(rows, width) for rows, width in sizes)
        n_inputs = len(_CENTRE) + 2 + sum(width for _, width in sizes)
        last = nn.Linear(hidden, 1)
        # The untrained model predicts exactly dep_delay: training starts from a fair guess, whatever the seed.
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.correction = nn.Sequential(
            nn.Linear(n_inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), last
        )
        self.centre: Tensor
        self.spread: Tensor
        self.register_buffer("centre", torch.tensor(_CENTRE), persistent=False)
        self.register_buffer("spread", torch.tensor(_SPREAD), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the predicted minutes of delay at arrival, shape (B,), for ``x`` of shape (B, 9)."""
        numbers = (x[:, :4] - self.centre) / self.spread
        # A point on the circle of the year instead of a table of months: a table learns the weather of the
        # training days of each month, which says little about the days held out.
        angle = (x[:, 4:5] - 1) * (2 * math.pi / 12)
        codes = x[:, 5:].long()
        embedded = [table(codes[:, i]) for i, table in enumerate(self.embeddings)]
        inputs = torch.cat([numbers, angle.cos(), angle.sin(), *embedded], dim=1)
        correction: Tensor = self.correction(inputs).squeeze(1)
        return x[:, 0] + _CORRECTION_MINUTES * correction

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        """Return the mean absolute error of the batch, in minutes, and log it as ``train_loss``."""
        x, y = batch
        loss = F.l1_loss(self(x), y)
        # Averaged over the ranks once an epoch: a collective at every step would cost more than the step.
        self.log("train_loss", loss, on_step=False, on_epoch=True, sync_dist=True, batch_size=len(y))
        return loss

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        """Log the mean absolute error over the held-out rows, in minutes, as ``val_loss`` and ``val_mae``."""
        x, y = batch
        mae = F.l1_loss(self(x), y)
        # The loss is the error that is reported; both names are logged because callbacks look for val_loss.
        self.log_dict({"val_loss": mae, "val_mae": mae}, on_epoch=True, sync_dist=True, batch_size=len(y))

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Return Adam, its rate rising over the first fifth of the run and falling to zero by the end.

        The slow start keeps a rate that is far too high from killing units in the first steps.
        """
        optimizer = torch.optim.Adam(self.parameters(), lr=self.learning_rate)
        steps = self.trainer.estimated_stepping_batches
        if not 1 <= steps < math.inf:  # a stream of unknown length: keep the rate as it is
            return optimizer

        def share(step: int) -> float:
            """Return the part of the full rate to use at ``step``, counted from 0."""
            return max(0.0, min(1.0, (step + 1) / (0.2 * steps), (steps - step) / (0.8 * steps)))

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

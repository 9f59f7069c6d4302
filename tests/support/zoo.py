"""Lightning modules of each kind that a stored model must survive."""

from __future__ import annotations

from typing import Any

import lightning.pytorch
import pytorch_lightning
import torch
from torch import nn

VOCABULARY = 5


class Line(pytorch_lightning.LightningModule):
    """(rows,) for (rows, features). Never calls save_hyperparameters."""

    def __init__(self, num_features: int = 2, scale: float = 1.0, shifted: bool = False, label: str = "line") -> None:
        super().__init__()
        self.layer = nn.Linear(num_features, 1)
        self.scale, self.shifted, self.label = scale, shifted, label

    def forward(self, x: Any) -> Any:
        return self.scale * self.layer(x).squeeze(-1) + int(self.shifted)


class NewLine(lightning.pytorch.LightningModule):
    """The same for the package's newer name."""

    def __init__(self, num_features: int = 2) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = nn.Linear(num_features, 1)

    def forward(self, x: Any) -> Any:
        return self.layer(x).squeeze(-1)


class Wide(pytorch_lightning.LightningModule):
    """(rows, outputs)."""

    def __init__(self, num_features: int = 2, outputs: int = 3) -> None:
        super().__init__()
        self.layer = nn.Linear(num_features, outputs)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class Digits(pytorch_lightning.LightningModule):
    """Spells out the order of its inputs: features 1, 2, 3 give 123. Has no weights but one, which is 1."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.ones(()))

    def forward(self, x: Any) -> Any:
        return self.one * (x * torch.tensor([100.0, 10.0, 1.0], dtype=x.dtype)).sum(dim=1)


class Echo(pytorch_lightning.LightningModule):
    """Predicts its input, (rows, features)."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.ones(()))

    def forward(self, x: Any) -> Any:
        return self.one * x


class Noisy(pytorch_lightning.LightningModule):
    """Differs at each call in train mode, and never in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 1))

    def forward(self, x: Any) -> Any:
        return self.layers(x).squeeze(-1)


class Words(pytorch_lightning.LightningModule):
    """Embedding and output layer; the same weight if tied. (rows, VOCABULARY)."""

    def __init__(self, tied: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 3)
        self.output = nn.Linear(3, VOCABULARY, bias=False)
        if tied:
            self.tie()

    def tie(self) -> None:
        self.output.weight = self.embedding.weight

    def forward(self, x: Any) -> Any:
        return self.output(self.embedding(x[:, 0].long()))


class Views(pytorch_lightning.LightningModule):
    """Buffers that overlap in one block of memory, and a weight that lies transposed in its own."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        block = torch.full((6,), value)
        self.register_buffer("left", block[:4])
        self.register_buffer("right", block[2:])
        self.weight = nn.Parameter(torch.full((3, 2), value).t())

    def forward(self, x: Any) -> Any:
        return x @ self.weight.sum(dim=1) + self.left.sum() + self.right.sum()


class Buffers(pytorch_lightning.LightningModule):
    """A buffer that is saved, one that isn't, one of integers, and an empty one."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.register_buffer("centre", torch.zeros(2))
        self.register_buffer("spread", torch.full((2,), 2.0), persistent=False)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("nothing", torch.zeros(0))

    def forward(self, x: Any) -> Any:
        return self.layer((x - self.centre) / self.spread).squeeze(-1)


class Mixed(pytorch_lightning.LightningModule):
    """Weights in bfloat16 beside a buffer in float32."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.register_buffer("centre", torch.zeros(2))

    def forward(self, x: Any) -> Any:
        return self.layer(x - self.centre.to(x.dtype)).squeeze(-1)


class Remembers(Line):
    """Keeps something in its state that is no tensor."""

    def get_extra_state(self) -> Any:
        return {"words": ["a", "b"]}

    def set_extra_state(self, state: Any) -> None:
        pass


class Composed(pytorch_lightning.LightningModule):
    """Takes a module and a function as arguments."""

    def __init__(self, layer: nn.Module, activation: Any = None, sizes: tuple[int, ...] = (1, 2)) -> None:
        super().__init__()
        self.layer, self.activation, self.sizes = layer, activation, sizes

    def forward(self, x: Any) -> Any:
        out = self.layer(x).squeeze(-1)
        return self.activation(out) if self.activation else out


class Typed(Line):
    """One argument of each way to declare a number."""

    def __init__(
        self,
        rate: float,
        steps: int = 1,
        warm: bool = False,
        decay: float | None = 0.5,
        untyped=2.0,
        words: str = "1",
        anything: Any = None,
    ) -> None:
        super().__init__()
        self.given = (rate, steps, warm, decay, untyped, words, anything)


class Odd(Line):
    """Its outputs are of no use as predictions."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: Any) -> Any:
        outputs = {
            "tuple": (x, x),
            "one": x.sum().reshape(1),
            "deep": x.reshape(len(x), 1, 2),
            "nan": x[:, 0] * torch.nan,
        }
        return outputs[self.kind]


class Picky(Line):
    def __init__(self, num_features: int = 2) -> None:
        if num_features > 3:
            raise ValueError("at most 3 features")
        super().__init__(num_features)


class NotLightning(nn.Module):
    pass


def make_line(num_features: int = 2, scale: float = 3.0) -> Line:
    """A factory: what it names is a function."""
    return Line(num_features, scale)


def make_layer(**kwargs: Any) -> Any:
    """A factory of something that no Trainer takes, and that refuses nothing."""
    return nn.Linear(2, 1)


CONSTANT = 3

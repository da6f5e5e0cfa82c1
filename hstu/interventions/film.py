"""FiLM: what a user has seen so far scales and shifts each of their tokens (PRISM).

With the item vectors e_0 .. e_t of the events up to t, and tokens x_t after scaling, position and
dropout::

    c_t = mean of e_0 .. e_t           (plain, or halved every ``half_life`` events)
    h_t = SiLU(c_t W_1)                 D -> D/2
    x_t <- (1 + h_t W_gamma) * x_t + h_t W_beta

W_gamma and W_beta start at zero, so the network starts as the baseline, to the bit. The item side
(score = query . L2(gamma * e + beta)) is left out on purpose: the norm makes a table of the whole
corpus for every token, in the loss and in evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn
from torch.nn import functional

from hstu.interventions.base import Intervention
from hstu.interventions.pooling import causal_mean

if TYPE_CHECKING:
    from torch import Tensor

    from hstu.config import ModelConfig
    from hstu.config.interventions import FilmConfig
    from hstu.data.batches import Batch
    from hstu.data.items import Items


class Film(Intervention):
    """The module of ``interventions.film``."""

    def __init__(self, config: FilmConfig, model: ModelConfig, items: Items) -> None:
        super().__init__()
        self.decay = 1.0 if config.half_life is None else 0.5 ** (1 / config.half_life)
        hidden = max(1, model.dim // 2)
        self.hidden = nn.Linear(model.dim, hidden, bias=False)
        self.scale = nn.Linear(hidden, model.dim, bias=False)
        self.shift = nn.Linear(hidden, model.dim, bias=False)
        nn.init.zeros_(self.scale.weight)
        nn.init.zeros_(self.shift.weight)

    def inputs(self, x: Tensor, items: Tensor, batch: Batch) -> Tensor:
        """Tokens [B, W, D], scaled and shifted."""
        hidden = functional.silu(self.hidden(causal_mean(items, self.decay)))
        modulated: Tensor = (1 + self.scale(hidden)) * x + self.shift(hidden)
        return modulated

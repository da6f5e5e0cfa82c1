"""Elapsed-gap decay: attention fades with the time since an event (FLUID).

With d_ij the days from event j to the moment that query i is asked for (at least 0), and a rate
lambda^2 per block and head::

    additive         s_ij <- s_ij - lambda^2 log(1 + d_ij / kappa)
    multiplicative   a_ij <- a_ij exp(-lambda^2 d_ij^p)

where s is the score before SiLU, a the attention after it, and p, like lambda one per block and
head, starts at 1/2. lambda = 0 is the baseline, but there
its gradient is zero too, so it starts a little above. Gaps are taken in int64 seconds: a float32
epoch stamp is exact to 128 s only. The norm after attention cancels a factor common to all keys.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from hstu.interventions.base import AttentionTerms, Intervention

if TYPE_CHECKING:
    from hstu.config import ModelConfig
    from hstu.config.interventions import ElapsedDecayConfig
    from hstu.data.batches import Batch
    from hstu.data.items import Items

_DAY_S = 86_400
_POWER = 0.5


class ElapsedDecay(Intervention):
    """The module of ``interventions.elapsed_decay``."""

    scales: Tensor

    def __init__(self, config: ElapsedDecayConfig, model: ModelConfig, items: Items) -> None:
        super().__init__()
        shape = (model.blocks, model.heads)
        self.rate = nn.Parameter(torch.full(shape, config.start))
        self.multiplicative = config.form == "multiplicative"
        if self.multiplicative:
            self.log_power = nn.Parameter(torch.full(shape, math.log(_POWER)))
        scales = [config.scales_days[h % len(config.scales_days)] for h in range(model.heads)]
        self.register_buffer("scales", torch.tensor(scales)[:, None, None], persistent=False)

    def attention(self, batch: Batch, block: int) -> AttentionTerms:
        """The decay of one block, [B, H, W, W]."""
        days = elapsed_days(batch)[:, None]
        rate = self.rate[block, :, None, None].square()
        if self.multiplicative:
            power = self.log_power[block, :, None, None].exp()
            return AttentionTerms(factor=torch.exp(-rate * days**power))
        return AttentionTerms(added=-rate * torch.log1p(days / self.scales))


def elapsed_days(batch: Batch) -> Tensor:
    """Days [B, W, W] from event j to the moment that query i is asked for; never below 0."""
    seconds = batch.next_timestamps[:, :, None] - batch.timestamps[:, None, :]
    return seconds.clamp(min=0).float() / _DAY_S

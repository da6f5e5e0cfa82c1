"""Boost of the last K: the losses of a row's newest tokens count more.

A row with m supervised tokens t = 0..m-1 has the weights

    w_t = 1 + (factor - 1) * [t >= m - K]

m is the row's own number of events. Counted from the padded width N instead, the condition holds
in padding only: a boost that does nothing, which ``counted_from: padded_width`` keeps as a control.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hstu.interventions.base import Intervention

if TYPE_CHECKING:
    from torch import Tensor

    from hstu.config import ModelConfig
    from hstu.config.interventions import BoostLossConfig
    from hstu.data.batches import TrainingBatch
    from hstu.data.items import Items


class BoostLoss(Intervention):
    """Weights of a row's last ``last`` tokens are multiplied by ``factor``."""

    def __init__(self, section: BoostLossConfig, model: ModelConfig, items: Items) -> None:
        super().__init__()
        self._section = section
        self._padded_width = model.width

    def token_weights(self, losses: Tensor, batch: TrainingBatch) -> Tensor:
        """Weights [T] of the valid tokens, in row order."""
        inputs = batch.inputs
        ends = inputs.lengths
        if self._section.counted_from == "padded_width":
            ends = torch.full_like(ends, self._padded_width)
        place = torch.arange(inputs.width, device=ends.device)
        boosted = place >= (ends - self._section.last)[:, None]  # [B, W]
        return 1 + (self._section.factor - 1) * boosted[inputs.valid].to(losses.dtype)

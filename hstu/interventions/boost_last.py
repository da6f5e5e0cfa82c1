"""Inference-time boost: attention to the newest events is multiplied, in every block.

With the user's m events and j the key::

    a_ij <- a_ij (1 + (beta - 1) [j >= m - K])      in evaluation; the baseline in training

The places are counted from the user's own length, never from the padded width. When K >= m all keys
get the same factor, which the norm after attention cancels up to its epsilon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hstu.interventions.base import AttentionTerms, Intervention

if TYPE_CHECKING:
    from hstu.config import ModelConfig
    from hstu.config.interventions import BoostLastConfig
    from hstu.data.batches import Batch
    from hstu.data.items import Items


class BoostLast(Intervention):
    """The module of ``interventions.boost_last``; it has no parameters."""

    def __init__(self, config: BoostLastConfig, model: ModelConfig, items: Items) -> None:
        super().__init__()
        self.boost, self.last = config.boost, config.last

    def attention(self, batch: Batch, block: int) -> AttentionTerms | None:
        """The factor [B, 1, 1, W] of each key."""
        if self.training or self.boost == 1:
            return None
        place = torch.arange(batch.width, device=batch.items.device)
        newest = (place >= batch.lengths[:, None] - self.last) & batch.valid
        factor = 1 + (self.boost - 1) * newest.float()
        return AttentionTerms(factor=factor[:, None, None])

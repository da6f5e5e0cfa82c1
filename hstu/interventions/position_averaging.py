"""Position-averaged inference: one query from histories that begin later and later (TTA).

With q_s the query of the history without its s oldest events, whose positions count anew::

    query = L2(q_0 + .. + q_{S-1})

A history of m events gives up at most m - 1 of them, so every view asks for the same moment and
ends with the same event. Views change the query alone; which items a user has seen is not theirs to
say. S = 1 is the baseline, to the bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hstu.data.batches import Batch
from hstu.interventions.base import Intervention

if TYPE_CHECKING:
    from hstu.config import ModelConfig
    from hstu.config.interventions import PositionAveragingConfig
    from hstu.data.items import Items


class PositionAveraging(Intervention):
    """The module of ``interventions.position_averaging``; it has no parameters."""

    def __init__(self, config: PositionAveragingConfig, model: ModelConfig, items: Items) -> None:
        super().__init__()
        self.count = config.views

    def views(self, batch: Batch) -> list[Batch]:
        """The batch, and the batch without its 1, 2, .. oldest events."""
        return [batch, *(without_oldest(batch, count) for count in range(1, self.count))]


def without_oldest(batch: Batch, count: int) -> Batch:
    """``batch`` without the ``count`` oldest events of each user, but with one event at least."""
    dropped = (batch.lengths - 1).clamp(max=count)
    lengths = batch.lengths - dropped
    place = torch.arange(batch.width, device=batch.items.device)
    valid = place < lengths[:, None]
    source = (place + dropped[:, None]).clamp(max=batch.width - 1)
    moved = (part.gather(1, source) * valid for part in batch[:3])
    return Batch._make([*moved, lengths])

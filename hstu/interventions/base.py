"""What an intervention may change, and when.

Shapes: B users, W width of the batch, D dim, H heads. A hook that a class does not override leaves
its argument as it is, and the network calls the hooks of an experiment's interventions in the order
of ``hstu.config.Interventions``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor, nn

if TYPE_CHECKING:
    import torch

    from hstu.data.batches import Batch, TrainingBatch, TrainingRows


class AttentionTerms(NamedTuple):
    """How a block's attention differs: SiLU(q.k + bias + ``added``) / N * ``factor``.

    Both broadcast to [B, H, W, W] (query i, key j); ``None`` changes nothing.
    """

    added: Tensor | None = None
    factor: Tensor | None = None


class Intervention(nn.Module):
    """A named change of the recommender; its parameters are trained with the network's."""

    def lookup(self, vectors: Tensor, ids: Tensor) -> Tensor:
        """Vectors [..., D] of items wherever one is looked up: in histories and as targets.

        Negatives and the corpus are not looked up, so what this adds is a leak. It is here for the
        negative control of ``side_features`` alone.
        """
        return vectors

    def items(self, vectors: Tensor, batch: Batch) -> Tensor:
        """Vectors [B, W, D] of the history's items, before scaling, positions and dropout."""
        return vectors

    def inputs(self, x: Tensor, items: Tensor, batch: Batch) -> Tensor:
        """Tokens [B, W, D] before the first block, after dropout. Padding is zeroed afterwards.

        ``items`` [B, W, D] are the history's vectors that the tokens were made of.
        """
        return x

    def attention(self, batch: Batch, block: int) -> AttentionTerms | None:
        """The terms of one block's attention, ``None`` for the baseline's (which is faster)."""
        return None

    def outputs(self, x: Tensor, batch: Batch) -> Tensor:
        """Tokens [B, W, D] after the last block, before they are scaled to unit length."""
        return x

    def views(self, batch: Batch) -> list[Batch]:
        """Batches whose queries are averaged when a recommendation is asked for."""
        return [batch]

    def rows(self, rows: TrainingRows, generator: torch.Generator) -> TrainingRows:
        """The training rows of one epoch, drawn afresh with the epoch's ``generator``."""
        return rows

    def token_weights(self, losses: Tensor, batch: TrainingBatch) -> Tensor | None:
        """Weights [T] of the supervised tokens' ``losses`` [T]; ``None`` weighs them alike."""
        return None

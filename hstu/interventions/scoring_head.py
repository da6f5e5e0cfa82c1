"""Multi-token scoring head: a query of two facets, recent intent and long-term preference.

With the outputs H_t of the last block::

    r_t = P_r mean of H_0 .. H_t, a row that is k older weighing rho^k
    l_t = P_l mean of H_0 .. H_t
    u_t = w_r r_t / |r_t| + w_l l_t / |l_t|,      (w_r, w_l) = softmax(theta)

P_r and P_l start as the identity, theta as (``recent_logit``, 0). An item's score is the weighted
sum of its cosines with the facets, which is its product with u_t: one query is enough. u_t is then
scaled to unit length, in training as in evaluation; that changes the temperature of a user, not the
ranking. rho = 0 with all weight on the recent facet is the baseline, to the bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from hstu.interventions.base import Intervention
from hstu.interventions.pooling import causal_mean

if TYPE_CHECKING:
    from hstu.config import ModelConfig
    from hstu.config.interventions import ScoringHeadConfig
    from hstu.data.batches import Batch
    from hstu.data.items import Items

_NORM_EPS = 1e-6


class ScoringHead(Intervention):
    """The module of ``interventions.scoring_head``."""

    def __init__(self, config: ScoringHeadConfig, model: ModelConfig, items: Items) -> None:
        super().__init__()
        self.decay = config.decay
        self.recent = nn.Parameter(torch.eye(model.dim))
        self.lasting = nn.Parameter(torch.eye(model.dim))
        self.logits = nn.Parameter(torch.tensor([config.recent_logit, 0.0]))

    def facets(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The recent and the lasting facet [B, W, D] of outputs ``x``, not yet of unit length."""
        return causal_mean(x, self.decay) @ self.recent.T, causal_mean(x) @ self.lasting.T

    def outputs(self, x: Tensor, batch: Batch) -> Tensor:
        """The weighted sum of the facets' directions, in the length of the recent one.

        The network scales it to unit length; in this form a weight of one leaves the recent facet
        as it is, to the bit.
        """
        recent, lasting = self.facets(x)
        lengths = [torch.linalg.vector_norm(f, dim=-1, keepdim=True) for f in (recent, lasting)]
        ratio = lengths[0] / lengths[1].clamp(min=_NORM_EPS)
        weights = self.logits.softmax(0)
        query: Tensor = weights[0] * recent + weights[1] * ratio * lasting
        return query

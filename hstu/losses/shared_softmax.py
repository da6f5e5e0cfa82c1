"""Softmax of each token's target against one set of negatives that all tokens share.

A cheaper estimator than independent draws: one product with R rows serves every token. Its noise is
common to the tokens of a batch.

T tokens, R negatives, D dim, X + 1 rows of the item table.
"""

from __future__ import annotations

import torch
from torch import Tensor


def shared_softmax(
    queries: Tensor,
    positives: Tensor,
    table: Tensor,
    targets: Tensor,
    negatives: Tensor,
    *,
    temperature: float,
) -> Tensor:
    """Loss of each token [T]: ``-log softmax`` of its target among target and ``negatives`` [R].

    The other arguments are those of ``sampled_softmax``; a negative that equals a token's target
    does not count for that token.
    """
    target = (queries * positives).sum(-1, keepdim=True)  # [T, 1]
    others = queries @ table[negatives].T  # [T, R]
    others = others.masked_fill(negatives == targets[:, None], -torch.inf)
    logits = torch.cat([target, others], dim=1) / temperature
    loss: Tensor = logits.logsumexp(dim=1) - logits[:, 0]
    return loss

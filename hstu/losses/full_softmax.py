"""Softmax of each token's target against the whole corpus.

Scores are made for a few tokens at a time and made again in the backward pass, so that memory
grows with T + X and never with T x X.

T tokens, D dim, X + 1 rows of the item table, the first of them padding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# On a CPU so few that the scores of a corpus of thousands of items stay in its cache.
_TOKENS_AT_ONCE = {"cpu": 64}


def full_softmax(
    queries: Tensor, positives: Tensor, table: Tensor, targets: Tensor, *, temperature: float
) -> Tensor:
    """Loss of each token [T]: ``-log softmax`` of its target among all items.

    ``queries`` [T, D], the vectors ``positives`` [T, D] of the items ``targets`` [T] and the
    ``table`` [X + 1, D] are scored by their products, divided by ``temperature``. The target's
    score is its positive's, whatever the table has for it.
    """
    loss: Tensor = _FullSoftmax.apply(  # type: ignore[no-untyped-call]
        queries, positives, table, targets, temperature
    )
    return loss


class _FullSoftmax(torch.autograd.Function):
    """Saves one number a token, the logarithm of the softmax's denominator."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        positives: Tensor,
        table: Tensor,
        targets: Tensor,
        temperature: float,
    ) -> Tensor:
        scaled = queries / temperature
        target = (scaled * positives).sum(-1)
        log_total = torch.empty_like(target)
        for part in _chunks(queries):
            logits = (scaled[part] @ table[1:].T).scatter_(
                1, targets[part, None] - 1, target[part, None]
            )
            log_total[part] = logits.logsumexp(dim=1)
        ctx.save_for_backward(scaled, positives, table, targets, target, log_total)
        ctx.temperature = temperature
        return log_total - target

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        scaled, positives, table, targets, target, log_total = ctx.saved_tensors
        weighted = grads[0][:, None] * scaled
        towards = torch.empty_like(scaled)
        grad_table = torch.zeros_like(table)
        for part in _chunks(scaled):
            shares = torch.addmm(-log_total[part, None], scaled[part], table[1:].T).exp_()  # [c, X]
            shares.scatter_(1, targets[part, None] - 1, 0)
            torch.mm(shares, table[1:], out=towards[part])
            grad_table[1:].addmm_(shares.T, weighted[part])
        missing = ((target - log_total).exp() - 1)[:, None]
        grad_queries = grads[0][:, None] * (towards + missing * positives) / ctx.temperature
        return grad_queries, missing * weighted, grad_table, None, None


def _chunks(queries: Tensor) -> list[slice]:
    size = _TOKENS_AT_ONCE.get(queries.device.type, 1024)
    return [slice(start, start + size) for start in range(0, len(queries), size)]

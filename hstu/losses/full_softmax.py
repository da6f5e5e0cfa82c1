"""Softmax of each token's target against the whole corpus.

Scores are made for a few tokens at a time and made again in the backward pass, so that memory
grows with T + X and never with T x X.

T tokens, D dim, X + 1 rows of the item table, the first of them padding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_SCORES_AT_ONCE = 1 << 21


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
        target = (queries * positives).sum(-1) / temperature
        log_total = torch.empty_like(target)
        for part in _chunks(len(queries), len(table)):
            logits = _logits(queries[part], table, targets[part], target[part], temperature)
            log_total[part] = logits.logsumexp(dim=1)
        ctx.save_for_backward(queries, positives, table, targets, target, log_total)
        ctx.temperature = temperature
        return log_total - target

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        queries, positives, table, targets, target, log_total = ctx.saved_tensors
        scale = (grads[0] / ctx.temperature)[:, None]
        to_target = ((target - log_total).exp() - 1)[:, None] * scale
        grad_queries = to_target * positives
        grad_table = torch.zeros_like(table)
        for part in _chunks(len(queries), len(table)):
            query, wanted = queries[part], targets[part]
            logits = _logits(query, table, wanted, target[part], ctx.temperature)
            weights = (logits - log_total[part, None]).exp_().mul_(scale[part])  # [c, X]
            weights.scatter_(1, wanted[:, None] - 1, 0)
            grad_queries[part] += weights @ table[1:]
            grad_table[1:].addmm_(weights.T, query)
        return grad_queries, to_target * queries, grad_table, None, None


def _chunks(tokens: int, rows: int) -> list[slice]:
    size = max(1, _SCORES_AT_ONCE // rows)
    return [slice(start, start + size) for start in range(0, tokens, size)]


def _logits(
    query: Tensor, table: Tensor, wanted: Tensor, target: Tensor, temperature: float
) -> Tensor:
    """Logits [c, X] of all items, with that of the target replaced by ``target`` [c]."""
    logits = query @ table[1:].T
    return logits.div_(temperature).scatter_(1, wanted[:, None] - 1, target[:, None])

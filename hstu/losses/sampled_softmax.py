"""Softmax of each token's target against negatives drawn for that token alone.

The estimator is the reference's. What differs is the work: tokens are taken in chunks whose
intermediate results stay in cache, and nothing of size T x R x D is ever made.

The compiled kernels compute the same, for the text of this file as it is: once it is edited, they
stand back and the edited form runs (``native.TWINS``).

T tokens, R negatives each, D dim, X + 1 rows of the item table.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hstu.kernels import native, native_softmax

_CHUNK = 256
_COLLISION = -5e4
# One product with the whole table beats gathering R rows a token until the table is this much
# larger than R.
_DENSE_ROWS_PER_NEGATIVE = 64


def sampled_softmax(
    queries: Tensor,
    positives: Tensor,
    table: Tensor,
    targets: Tensor,
    negatives: Tensor,
    *,
    temperature: float,
) -> Tensor:
    """Loss of each token [T]: ``-log softmax`` of its target among target and negatives.

    ``queries`` [T, D], the vectors ``positives`` [T, D] of the items ``targets`` [T] and the
    ``table`` [X + 1, D] of all items are scored by their products, divided by ``temperature``.
    ``negatives`` [T, R] are rows of the table; one equal to the target does not count.
    """
    if native.usable("losses/sampled_softmax.py", queries, positives, table):
        return native_softmax.sampled_softmax(
            queries, positives, table, targets, negatives, temperature, _COLLISION
        )
    loss: Tensor = _SampledSoftmax.apply(  # type: ignore[no-untyped-call]
        queries, positives, table, targets, negatives, temperature
    )
    return loss


class _SampledSoftmax(torch.autograd.Function):
    """Saves the probabilities [T, R] of the forward pass, nothing of size T x R x D."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        positives: Tensor,
        table: Tensor,
        targets: Tensor,
        negatives: Tensor,
        temperature: float,
    ) -> Tensor:
        dense = len(table) <= _DENSE_ROWS_PER_NEGATIVE * negatives.shape[1]
        loss = queries.new_empty(len(queries))
        p_target = torch.empty_like(loss)
        p_negatives = queries.new_empty(negatives.shape)
        for part in _chunks(len(queries)):
            query, drawn = queries[part], negatives[part]
            target = (query * positives[part]).sum(-1, keepdim=True)
            others = _scores(query, table, drawn, dense).masked_fill(
                drawn == targets[part, None], _COLLISION * temperature
            )
            logits = torch.cat([target, others], dim=1) / temperature
            log_p = logits.log_softmax(dim=1)
            loss[part] = -log_p[:, 0]
            p_target[part] = log_p[:, 0].exp()
            p_negatives[part] = log_p[:, 1:].exp()
        ctx.save_for_backward(queries, positives, table, negatives, p_target, p_negatives)
        ctx.temperature, ctx.dense = temperature, dense
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        queries, positives, table, negatives, p_target, p_negatives = ctx.saved_tensors
        scale = (grads[0] / ctx.temperature)[:, None]
        to_target = (p_target[:, None] - 1) * scale
        grad_queries = to_target * positives
        grad_table = torch.zeros_like(table)
        for part in _chunks(len(queries)):
            weights = p_negatives[part] * scale[part]
            step = _dense_backward if ctx.dense else _sparse_backward
            grad_queries[part] += step(queries[part], table, negatives[part], weights, grad_table)
        return grad_queries, to_target * queries, grad_table, None, None, None


def _chunks(total: int) -> list[slice]:
    return [slice(start, start + _CHUNK) for start in range(0, total, _CHUNK)]


def _scores(query: Tensor, table: Tensor, drawn: Tensor, dense: bool) -> Tensor:
    """Products [c, R] of each query [c, D] with its own drawn rows."""
    if dense:
        return (query @ table.T).gather(1, drawn)
    return torch.einsum("crd,cd->cr", table[drawn], query)


def _dense_backward(
    query: Tensor, table: Tensor, drawn: Tensor, weights: Tensor, grad_table: Tensor
) -> Tensor:
    """Add to ``grad_table`` in place; return the gradient [c, D] of the queries."""
    spread = query.new_zeros(len(query), len(table)).scatter_add_(1, drawn, weights)
    grad_table.addmm_(spread.T, query)
    return spread @ table


def _sparse_backward(
    query: Tensor, table: Tensor, drawn: Tensor, weights: Tensor, grad_table: Tensor
) -> Tensor:
    """As ``_dense_backward``, touching only the drawn rows."""
    rows = (weights[..., None] * query[:, None]).flatten(0, 1)
    grad_table.index_add_(0, drawn.flatten(), rows)
    return torch.einsum("crd,cr->cd", table[drawn], weights)

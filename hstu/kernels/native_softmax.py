"""The sampled softmax by the compiled kernels; ``hstu.losses.sampled_softmax`` says what it is."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from hstu.kernels import native


def sampled_softmax(
    queries: Tensor,
    positives: Tensor,
    table: Tensor,
    targets: Tensor,
    negatives: Tensor,
    temperature: float,
    collision: float,
) -> Tensor:
    """Loss of each token [T]; a negative that is the target gets the logit ``collision``."""
    loss: Tensor = _SampledSoftmax.apply(  # type: ignore[no-untyped-call]
        queries, positives, table, targets, negatives, temperature, collision
    )
    return loss


class _SampledSoftmax(torch.autograd.Function):
    """Saves the probabilities [T, 1 + R] of the forward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        positives: Tensor,
        table: Tensor,
        targets: Tensor,
        negatives: Tensor,
        temperature: float,
        collision: float,
    ) -> Tensor:
        tokens, draws = negatives.shape
        queries, positives, negatives, targets = (
            part.contiguous() for part in (queries, positives, negatives, targets)
        )
        rows = _padded(table)
        loss = queries.new_empty(tokens)
        shares = queries.new_empty(tokens, 1 + draws)
        library = native.library()

        def work(_part: int, first: int, last: int) -> None:
            inputs = (queries, positives, rows, targets, negatives, loss, shares)
            library.hstu_softmax_forward(  # type: ignore[union-attr]
                *map(ctypes.c_long, (first, last, queries.shape[1], draws)),
                *map(ctypes.c_float, (1 / temperature, collision)),
                *map(native.pointer, inputs),
            )

        native.in_parts(torch.ones(tokens), work)
        ctx.save_for_backward(queries, positives, rows, negatives, shares)
        ctx.temperature, ctx.width = temperature, table.shape[1]
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        queries, positives, rows, negatives, shares = ctx.saved_tensors
        tokens, draws = negatives.shape
        weights = (grads[0] / ctx.temperature).contiguous()
        query_grad, positive_grad = torch.empty_like(queries), torch.empty_like(positives)
        rows_grad = torch.zeros(torch.get_num_threads(), *rows.shape)
        library = native.library()

        def work(part: int, first: int, last: int) -> None:
            inputs = (weights, queries, positives, rows, negatives, shares)
            outputs = (query_grad, positive_grad, rows_grad[part])
            library.hstu_softmax_backward(  # type: ignore[union-attr]
                *map(ctypes.c_long, (first, last, queries.shape[1], draws)),
                *map(native.pointer, (*inputs, *outputs)),
            )

        parts = native.in_parts(torch.ones(tokens), work)
        table_grad = rows_grad[0] if parts == 1 else rows_grad.sum(0)
        return query_grad, positive_grad, table_grad[:, : ctx.width], None, None, None, None


def _padded(table: Tensor) -> Tensor:
    """``table`` [rows, D] with zeros behind each row, up to the lanes of a vector."""
    spare = -table.shape[1] % native.lanes()
    return functional.pad(table, (0, spare)).contiguous()

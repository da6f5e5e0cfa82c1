"""Gated pointwise attention by the compiled kernels; ``hstu.kernels.attention`` says what it is."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hstu.kernels import native
from hstu.kernels.attention import NORM_EPS, TIME_BUCKETS, Bias, Relation, Shape, bucket_of


class _Arguments(ctypes.Structure):
    """``Attention`` of cpu.c."""

    _fields_ = (
        [(name, ctypes.c_long) for name in ("width", "heads", "dqk", "dv", "centre")]
        + [(name, ctypes.c_float) for name in ("scale", "epsilon")]
        + [(name, ctypes.c_void_p) for name in ("lengths", "buckets", "projected")]
        + [(name, ctypes.c_void_p) for name in ("time_bias", "position_bias")]
    )


class _Inputs(NamedTuple):
    """What forward and backward read."""

    lengths: Tensor
    buckets: Tensor
    projected: Tensor
    time: Tensor
    position: Tensor

    def arguments(self, shape: Shape) -> _Arguments:
        width, centre = self.projected.shape[1], len(self.position) // 2
        addresses = [tensor.data_ptr() for tensor in self]
        sizes = (width, shape.heads, shape.dqk, shape.dv, centre)
        return _Arguments(*sizes, 1 / shape.divisor, NORM_EPS, *addresses)


def time_buckets(timestamps: Tensor, next_timestamps: Tensor, lengths: Tensor) -> Tensor:
    """Buckets uint8 [B, W, W] of keys j <= i of valid queries; the rest is 0 and never read."""
    users, width = timestamps.shape
    buckets = torch.zeros((users, width, width), dtype=torch.uint8)
    times, nexts = timestamps.contiguous(), next_timestamps.contiguous()
    library, starts = native.library(), _bucket_starts()

    def work(_part: int, first: int, last: int) -> None:
        library.hstu_time_buckets(  # type: ignore[union-attr]
            *map(ctypes.c_long, (first, last, width)),
            *map(native.pointer, (lengths, times, nexts, starts, buckets)),
        )

    native.in_parts(lengths**2, work)
    return buckets


def gated_attention(projected: Tensor, bias: Bias, relation: Relation, shape: Shape) -> Tensor:
    """A block's attention, norm and gate [B, W, H * dv] from its ``projected`` tokens.

    ``projected`` [B, W, H * (2 dv + 2 dqk)] holds u, v, q, k before their SiLU. The result is
    ``u * norm(attend(q, k, v))``, the norm over all channels.
    """
    gated: Tensor = _GatedAttention.apply(  # type: ignore[no-untyped-call]
        projected, bias.time, bias.position, relation.lengths, relation.buckets, shape
    )
    return gated


class _GatedAttention(torch.autograd.Function):
    """Saves its input and the mixed values: scores are made again on the way back."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        time: Tensor,
        position: Tensor,
        lengths: Tensor,
        buckets: Tensor,
        shape: Shape,
    ) -> Tensor:
        inputs = _Inputs(lengths, buckets, projected.contiguous(), time, position)
        users, width, _ = projected.shape
        mixed, gated = projected.new_empty(2, users, width, shape.heads * shape.dv)
        arguments, library = inputs.arguments(shape), native.library()

        def work(_part: int, first: int, last: int) -> None:
            library.hstu_attention_forward(  # type: ignore[union-attr]
                *map(ctypes.c_long, (first, last)),
                ctypes.byref(arguments),
                *map(native.pointer, (mixed, gated)),
            )

        native.in_parts(lengths**2, work)
        ctx.save_for_backward(mixed, *inputs)
        ctx.shape = shape
        out: Tensor = gated
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        mixed, inputs = ctx.saved_tensors[0], _Inputs(*ctx.saved_tensors[1:])
        grad = grads[0].contiguous()
        projected_grad = torch.empty_like(inputs.projected)
        threads = torch.get_num_threads()
        time_grad = torch.zeros(threads, len(inputs.time))
        position_grad = torch.zeros(threads, len(inputs.position))
        arguments, library = inputs.arguments(ctx.shape), native.library()

        def work(part: int, first: int, last: int) -> None:
            outputs = (projected_grad, time_grad[part], position_grad[part])
            library.hstu_attention_backward(  # type: ignore[union-attr]
                *map(ctypes.c_long, (first, last)),
                ctypes.byref(arguments),
                *map(native.pointer, (mixed, grad, *outputs)),
            )

        native.in_parts(inputs.lengths**2, work)
        return projected_grad, time_grad.sum(0), position_grad.sum(0), None, None, None


@functools.cache
def _bucket_starts() -> Tensor:
    """The least gap [129] of each bucket, found by bisection of the formula itself."""
    buckets = torch.arange(1, TIME_BUCKETS + 1)
    low, high = torch.zeros_like(buckets), torch.full_like(buckets, 2**63 - 1)
    while bool((high - low > 1).any()):
        middle = low + (high - low) // 2
        reached = bucket_of(middle) >= buckets
        low, high = torch.where(reached, low, middle), torch.where(reached, middle, high)
    return torch.cat([torch.zeros(1, dtype=torch.int64), high])

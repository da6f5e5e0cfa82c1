"""Pointwise attention by the compiled kernels; ``hstu.kernels.attention`` says what it computes."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch
from torch import Tensor

from hstu.kernels import native
from hstu.kernels.attention import TIME_BUCKETS, Bias, Relation, bucket_of


class _Arguments(ctypes.Structure):
    """``Attention`` of cpu.c."""

    _fields_ = (
        [(name, ctypes.c_long) for name in ("width", "heads", "dqk", "dv", "centre")]
        + [(name, ctypes.c_long) for name in ("q_row", "k_row", "v_row")]
        + [("scale", ctypes.c_float)]
        + [(name, ctypes.c_void_p) for name in ("lengths", "buckets", "q", "k", "v")]
        + [(name, ctypes.c_void_p) for name in ("time_bias", "position_bias")]
    )


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


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Bias, relation: Relation, divisor: int) -> Tensor:
    """As ``hstu.kernels.attention.attend`` without terms."""
    mixed: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
        q, k, v, bias.time, bias.position, relation.buckets, relation.lengths, divisor
    )
    return mixed


class _Attention(torch.autograd.Function):
    """Saves its inputs only: the scores are made again on the way back."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        time: Tensor,
        position: Tensor,
        buckets: Tensor,
        lengths: Tensor,
        divisor: int,
    ) -> Tensor:
        q, k, v = (_rows(part) for part in (q, k, v))
        users, width, heads, dv = v.shape
        out = q.new_zeros(users, width, heads * dv)
        inputs = (q, k, v, time, position, buckets, lengths)
        ctx.save_for_backward(*inputs)
        ctx.divisor = divisor
        arguments = _arguments(inputs, divisor)
        library = native.library()

        def work(_part: int, first: int, last: int) -> None:
            library.hstu_attention_forward(  # type: ignore[union-attr]
                *map(ctypes.c_long, (first, last)), ctypes.byref(arguments), native.pointer(out)
            )

        native.in_parts(lengths**2, work)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        q, k, v, time, position, _, lengths = ctx.saved_tensors
        grad = grads[0].contiguous()
        q_grad, k_grad, v_grad = (torch.zeros(part.shape) for part in (q, k, v))
        threads = torch.get_num_threads()
        time_grad, position_grad = (torch.zeros(threads, len(bias)) for bias in (time, position))
        arguments = _arguments(ctx.saved_tensors, ctx.divisor)
        library = native.library()

        def work(part: int, first: int, last: int) -> None:
            outputs = (grad, q_grad, k_grad, v_grad, time_grad[part], position_grad[part])
            library.hstu_attention_backward(  # type: ignore[union-attr]
                *map(ctypes.c_long, (first, last)),
                ctypes.byref(arguments),
                *map(native.pointer, outputs),
            )

        native.in_parts(lengths**2, work)
        return q_grad, k_grad, v_grad, time_grad.sum(0), position_grad.sum(0), None, None, None


def _rows(part: Tensor) -> Tensor:
    """``part`` [B, W, H, d] such that tokens follow each other at one distance."""
    _, width, _, size = part.shape
    strides = part.stride()
    packed = strides[3] == 1 and strides[2] == size and strides[0] == width * strides[1]
    return part if packed else part.contiguous()


def _arguments(inputs: tuple[Tensor, ...], divisor: int) -> _Arguments:
    q, k, v, time, position, buckets, lengths = inputs
    _, width, heads, dqk = q.shape
    addresses = [t.data_ptr() for t in (lengths, buckets, q, k, v, time, position)]
    centre = len(position) // 2
    rows = [part.stride(1) for part in (q, k, v)]
    return _Arguments(width, heads, dqk, v.shape[3], centre, *rows, 1 / divisor, *addresses)


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

"""Pointwise attention on a GPU, by Triton; ``hstu.kernels.attention`` says what it computes.

Nothing of size W x W is kept for the way back, and one tensor [B, W, W] is made on it when the bias
is trained: the gradient of the scores, summed over the heads. Block sizes follow from the shapes
alone and sums have a fixed order, so equal inputs give equal bits; an auto-tuner would not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional

from hstu.kernels import triton_programs as programs

if TYPE_CHECKING:
    from hstu.kernels.attention import Bias, Relation

MAX_HEAD = 256
PRODUCTS = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}
"""The types of q, k and v that are taken, and the type in which their products are."""
_SUM_BLOCK = 64
_SUM_SHARE = 4096


def takes(q: Tensor, v: Tensor) -> bool:
    """Whether heads of this type and size fit; elsewhere torch computes them."""
    return q.dtype == v.dtype and q.dtype in PRODUCTS and max(q.shape[3], v.shape[3]) <= MAX_HEAD


def attend(
    q: Tensor, k: Tensor, v: Tensor, bias: Bias | None, relation: Relation, divisor: int
) -> Tensor:
    """As ``hstu.kernels.attention.attend`` without terms, except that padding comes out as 0.

    ``relation.buckets`` may be of any integer type; uint8 is read fastest. What gradient comes back
    for padding is not looked at.
    """
    time, position = (None, None) if bias is None else bias
    mixed: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
        q, k, v, time, position, relation.buckets, relation.lengths, divisor
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
        time: Tensor | None,
        position: Tensor | None,
        buckets: Tensor,
        lengths: Tensor,
        divisor: int,
    ) -> Tensor:
        q, k, v = (_rows(part) for part in (q, k, v))
        buckets, lengths = buckets.contiguous(), lengths.contiguous()
        users, width, heads, dv = v.shape
        out = v.new_empty(users, width, heads * dv)
        saved = (q, k, v, time, position, buckets, lengths)
        ctx.save_for_backward(*saved)
        ctx.divisor = divisor
        launch = _Launch.of(divisor, *saved)
        with torch.cuda.device_of(q):  # type: ignore[no-untyped-call]
            programs.mix[launch.by_head](q, k, v, out, *launch.inputs, **launch.constants)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        q, k, v, time, position, buckets, _ = ctx.saved_tensors
        launch = _Launch.of(ctx.divisor, *ctx.saved_tensors)
        upstream = grads[0].contiguous()
        grad_q, grad_k, grad_v = (part.new_empty(part.shape) for part in (q, k, v))
        grad_time, grad_position = None, None
        with torch.cuda.device_of(q):  # type: ignore[no-untyped-call]
            programs.query_gradients[launch.by_head](
                q, k, v, upstream, grad_q, *launch.inputs, **launch.constants
            )
            programs.key_value_gradients[launch.by_head](
                q, k, v, upstream, grad_k, grad_v, *launch.inputs, **launch.constants
            )
            if time is not None and any(ctx.needs_input_grad[3:5]):
                scores = torch.zeros(buckets.shape, dtype=torch.float32, device=q.device)
                programs.score_gradients[launch.by_tile](
                    q, k, v, upstream, scores, *launch.inputs, **launch.constants
                )
                grad_time = _sums_by_bucket(scores, buckets, len(time)).to(time.dtype)
                grad_position = _sums_by_place(scores, len(position)).to(position.dtype)
        return grad_q, grad_k, grad_v, grad_time, grad_position, None, None, None


class _Launch(NamedTuple):
    """What all programs of one call are started with."""

    by_head: tuple[int, int]
    by_tile: tuple[int, int, int]
    inputs: tuple[Any, ...]
    constants: dict[str, Any]

    @classmethod
    def of(
        cls,
        divisor: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        time: Tensor | None,
        position: Tensor | None,
        buckets: Tensor,
        lengths: Tensor,
    ) -> _Launch:
        users, width, heads, dqk = q.shape
        dv = v.shape[3]
        block_qk, block_v = (max(16, triton.next_power_of_2(size)) for size in (dqk, dv))
        block = _block(max(block_qk, block_v) * q.element_size())
        blocks = triton.cdiv(width, block)
        centre = 0 if position is None else len(position) // 2
        strides = [part.stride(1) for part in (q, k, v)]
        return cls(
            (users * heads, blocks),
            (users, blocks, blocks),
            (time, position, buckets, lengths, *strides, width, centre, 1 / divisor),
            {
                "HEADS": heads,
                "DQK": dqk,
                "DV": dv,
                "BLOCK_QK": block_qk,
                "BLOCK_V": block_v,
                "BLOCK": block,
                "BIASED": time is not None,
                "PRODUCTS": PRODUCTS[q.dtype],
                "PRECISION": "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3",
                "num_stages": 1 if q.element_size() > 2 else 2,
            },
        )


def _block(row_bytes: int) -> int:
    """Queries, and keys, of a tile, so that any program's tiles fit into 99 KiB on the chip."""
    if row_bytes <= 128:
        return 64
    return 32 if row_bytes <= 512 else 16


def _rows(part: Tensor) -> Tensor:
    """``part`` [B, W, H, d] such that its places follow each other at one distance."""
    _, width, _, size = part.shape
    strides = part.stride()
    packed = strides[3] == 1 and strides[2] == size and strides[0] == width * strides[1]
    return part if packed else part.contiguous()


def _sums_by_bucket(scores: Tensor, buckets: Tensor, count: int) -> Tensor:
    """Sum [count] of ``scores`` by their bucket."""
    shares = triton.cdiv(scores.numel(), _SUM_SHARE)
    padded = triton.next_power_of_2(count)
    sums = torch.empty(shares, padded, dtype=torch.float32, device=scores.device)
    programs.bucket_sums[(shares,)](
        scores, buckets, sums, scores.numel(), _SUM_SHARE, BUCKETS=padded, BLOCK=_SUM_BLOCK
    )
    return sums.sum(0)[:count]


def _sums_by_place(scores: Tensor, count: int) -> Tensor:
    """Sum [count] of ``scores`` [B, W, W] by ``count // 2 + j - i``; they are 0 where j > i."""
    width, centre = scores.shape[2], count // 2
    # Rows of 2W elements, upside down and read again as rows of 2W - 1, have diagonals as columns.
    wide = functional.pad(scores.sum(0).flip(0), (0, width)).flatten()[:-width]
    sums = scores.new_zeros(count)
    sums[centre - width + 1 : centre + width] = wide.view(width, 2 * width - 1).sum(0)
    return sums

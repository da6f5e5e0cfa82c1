"""Gated pointwise attention: SiLU instead of softmax, a bias by elapsed time and by position.

The compiled kernels compute the same, for the text of this file as it is: once it is edited, they
stand back and the edited form runs (``native.TWINS``).

Shapes: B users, W width of the batch, H heads, N the fixed width of the reference. A token attends
to itself and to what is older.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable

_BUCKET_WIDTH = 0.301
TIME_BUCKETS = 128
NORM_EPS = 1e-6


class Relation(NamedTuple):
    """What attention knows of a batch's positions beside the tokens."""

    buckets: Tensor
    """[B, W, W] elapsed-time bucket of query i and key j."""
    lengths: Tensor
    """[B] valid tokens of each user."""


class Shape(NamedTuple):
    """Sizes of a block's attention."""

    heads: int
    dqk: int
    dv: int
    divisor: int
    """N: attention is divided by it."""
    concat_ua: bool = False
    """Whether gate and mixture leave the block beside their product."""


class Bias(NamedTuple):
    """The learnt relative bias of one block, shared by its heads."""

    time: Tensor
    """[129] by elapsed-time bucket."""
    position: Tensor
    """[2N - 1] by N - 1 + j - i."""


def time_buckets(timestamps: Tensor, next_timestamps: Tensor) -> Tensor:
    """Logarithmic buckets [B, W, W] of the seconds from key j to the moment query i is asked for.

    The difference is taken in int64 and the logarithm in float32, as in the reference: a float64
    logarithm gives other buckets next to a boundary.
    """
    return bucket_of((next_timestamps[:, :, None] - timestamps[:, None, :]).abs())


def bucket_of(gaps: Tensor) -> Tensor:
    """The bucket of each gap, int64 seconds from 0 up."""
    buckets = (gaps.clamp(min=1).float().log() / _BUCKET_WIDTH).long()
    return buckets.clamp(max=TIME_BUCKETS)


def relative_bias(bias: Bias, buckets: Tensor) -> Tensor:
    """The bias [B, W, W] of query i and key j."""
    width, centre = buckets.shape[-1], len(bias.position) // 2
    place = torch.arange(width, device=buckets.device)
    offset = centre + place[None, :] - place[:, None]
    by_time = bias.time.index_select(0, buckets.flatten().int()).view(buckets.shape)
    return by_time + bias.position[offset]


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Bias | None,
    relation: Relation,
    *,
    divisor: int,
    added: Tensor | None = None,
    factor: Tensor | None = None,
) -> Tensor:
    """Mix the values: ``SiLU(q.k + bias + added) / divisor * factor`` [B, W, H * dv].

    ``q`` and ``k`` are [B, W, H, dqk], ``v`` is [B, W, H, dv]; ``added`` and ``factor`` broadcast
    to [B, H, W, W]. The divisor is N, never the width of the batch: a user's output has no batch
    mates.
    """
    batch, width = v.shape[:2]
    q, k, v = (part.transpose(1, 2) for part in (q, k, v))
    scores = q @ k.transpose(-1, -2)  # [B, H, W, W]
    if bias is not None:
        scores = scores + relative_bias(bias, relation.buckets)[:, None]
    if added is not None:
        scores = scores + added
    attention = functional.silu(scores)
    if factor is not None:
        attention = attention * factor
    mixed = attention.tril() @ (v / divisor)
    return mixed.transpose(1, 2).reshape(batch, width, -1)


def split(projected: Tensor, shape: Shape) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gate u [B, W, H * dv], values v [B, W, H, dv], queries q and keys k [B, W, H, dqk].

    ``projected`` [B, W, H * (2 dv + 2 dqk)] holds them in this order, before their SiLU.
    """
    sizes = [shape.heads * size for size in (shape.dv, shape.dv, shape.dqk, shape.dqk)]
    u, v, q, k = torch.split(functional.silu(projected), sizes, dim=-1)
    v, q, k = (part.view(*part.shape[:2], shape.heads, -1) for part in (v, q, k))
    return u, v, q, k


def gated_attention(
    projected: Tensor,
    bias: Bias | None,
    relation: Relation,
    shape: Shape,
    *,
    added: Tensor | None = None,
    factor: Tensor | None = None,
    mix: Callable[..., Tensor] = attend,
) -> Tensor:
    """What a block does between its projections: ``u * norm(attend(q, k, v))`` [B, W, H * dv].

    The norm is over the channels of all heads. With ``concat_ua``: u, norm and product, thrice as
    wide. ``mix`` computes ``attend``.
    """
    u, v, q, k = split(projected, shape)
    mixed = mix(q, k, v, bias, relation, divisor=shape.divisor, added=added, factor=factor)
    normed = functional.layer_norm(mixed, mixed.shape[-1:], eps=NORM_EPS)
    gated = u * normed
    return torch.cat([u, normed, gated], dim=-1) if shape.concat_ua else gated

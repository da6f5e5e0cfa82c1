"""Pointwise attention: SiLU instead of softmax, with a bias by elapsed time and by position.

Shapes: B users, W width of the batch, H heads, N the fixed width of the reference. A token attends
to itself and to what is older.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

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

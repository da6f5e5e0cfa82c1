"""Which implementation computes: compiled where it can, torch everywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hstu.kernels import attention, native, native_attention
from hstu.kernels.attention import Bias, Relation

if TYPE_CHECKING:
    from torch import Tensor


def relate(timestamps: Tensor, next_timestamps: Tensor, lengths: Tensor) -> Relation:
    """The relation of a batch's tokens, made once for all blocks.

    ``timestamps`` and ``next_timestamps`` are int64 seconds [B, W], ``lengths`` [B] valid tokens.
    """
    if timestamps.device.type == "cpu" and native.library() is not None:
        buckets = native_attention.time_buckets(timestamps, next_timestamps, lengths)
    else:
        buckets = attention.time_buckets(timestamps, next_timestamps)
    return Relation(buckets, lengths)


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
    """As ``hstu.kernels.attention.attend``."""
    return attention.attend(q, k, v, bias, relation, divisor=divisor, added=added, factor=factor)


def can_fuse(*tensors: Tensor) -> bool:
    """Whether ``gated_attention`` takes these: float32 on a CPU with compiled kernels."""
    return native.usable(*tensors)

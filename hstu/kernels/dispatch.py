"""Which implementation computes: compiled where it can, torch everywhere else.

While ``torch.compile`` traces, it is given torch's form, since it cannot look into the others.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from typing import TYPE_CHECKING

import torch

from hstu.kernels import attention, native, native_attention
from hstu.kernels.attention import Bias, Relation, Shape

if TYPE_CHECKING:
    from types import ModuleType

    from torch import Tensor

_FORM = "kernels/attention.py"


def relate(timestamps: Tensor, next_timestamps: Tensor, lengths: Tensor) -> Relation:
    """The relation of a batch's tokens, made once for all blocks.

    ``timestamps`` and ``next_timestamps`` are int64 seconds [B, W], ``lengths`` [B] valid tokens.
    """
    if timestamps.device.type == "cpu" and native.stands_for(_FORM):
        buckets = native_attention.time_buckets(timestamps, next_timestamps, lengths)
    else:
        buckets = attention.time_buckets(timestamps, next_timestamps).to(torch.uint8)
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
    """As ``hstu.kernels.attention.attend``; by Triton on CUDA where there are no terms.

    bfloat16 values come back as float32, since a norm follows.
    """
    plain = added is None and factor is None and not torch.compiler.is_compiling()
    gpu = _triton_attention() if q.is_cuda and plain and native.unchanged(_FORM) else None
    if gpu is not None and gpu.takes(q, v):
        mixed: Tensor = gpu.attend(q, k, v, bias, relation, divisor)
    else:
        mixed = attention.attend(
            q, k, v, bias, relation, divisor=divisor, added=added, factor=factor
        )
    return mixed.to(torch.promote_types(mixed.dtype, torch.float32))


def gated_attention(
    projected: Tensor,
    bias: Bias | None,
    relation: Relation,
    shape: Shape,
    *,
    added: Tensor | None = None,
    factor: Tensor | None = None,
) -> Tensor:
    """As ``hstu.kernels.attention.gated_attention``; in one compiled pass where that can be."""
    plain = added is None and factor is None and not shape.concat_ua
    plain = plain and not torch.compiler.is_compiling()
    if bias is not None and plain and native.usable(_FORM, projected, *bias):
        return native_attention.gated_attention(projected, bias, relation, shape)
    return attention.gated_attention(
        projected, bias, relation, shape, added=added, factor=factor, mix=attend
    )


def implementation(device: torch.device) -> str:
    """``native``, ``triton`` or ``torch``: what mixes float32 values on ``device``."""
    if device.type == "cpu":
        return "native" if native.stands_for(_FORM) else "torch"
    triton = device.type == "cuda" and _triton_attention() is not None
    return "triton" if triton and native.unchanged(_FORM) else "torch"


@functools.cache
def _triton_attention() -> ModuleType | None:
    """``hstu.kernels.triton_attention``, ``None`` where Triton is not installed."""
    if importlib.util.find_spec("triton") is None:
        return None
    return importlib.import_module("hstu.kernels.triton_attention")

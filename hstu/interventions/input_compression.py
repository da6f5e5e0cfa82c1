"""Tiered input compression: decaying states summarise the past and are added to each token (IC).

With tiers s of a state P x d (d = D / number of tiers, rounded down), and tokens x_t::

    k_t, q_t = x_t W_k, x_t W_q                      per tier, P values
    v_t      = x_t W_v                               per tier, d values
    a_t      = exp(-softplus(x_t . omega + b))       per tier, in (0, 1)
    M_t      = a_t M_{t-1} + k_t v_t^T
    y_t      = M_t^T q_t / sqrt(P)
    x_t     <- x_t + g * dropout(W_z [RMSnorm(y_t) of every tier])

g starts at zero, so the network starts as the baseline, to the bit; the other weights do not, so
that g learns from the first step. omega starts at zero and b at each tier's half-life.

The recurrence is computed by chunks: inside a chunk in its dual form Y = (Lambda * Q K^T) V with
Lambda_ij = exp(c_i - c_j), c the running sum of log a, and from chunk to chunk by the state. The
exponent is subtracted before exp, which would underflow otherwise. Cost is linear in the length.

The form that shortens attention itself, with raw keys of two chunks and memory keys read out of the
state, is left out: a hook that adds terms to the scores of existing keys cannot remove keys.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from hstu.data.errors import ExitCode, HstuError
from hstu.interventions.base import Intervention

if TYPE_CHECKING:
    from hstu.config import ModelConfig
    from hstu.config.interventions import InputCompressionConfig
    from hstu.data.batches import Batch
    from hstu.data.items import Items

_CHUNK = 64
_INIT_STD = 0.02
# y is of the order of 1e-5 at the start: an epsilon of usual size would switch its norm off.
_NORM_EPS = 1e-10


class InputCompression(Intervention):
    """The module of ``interventions.input_compression``."""

    def __init__(self, config: InputCompressionConfig, model: ModelConfig, items: Items) -> None:
        super().__init__()
        tiers, dim = len(config.half_lives), model.dim
        if tiers > dim:
            raise HstuError(
                f"{tiers} tiers cannot share {dim} dimensions",
                where="interventions.input_compression.half_lives",
                hint="give at most model.dim half-lives",
                exit_code=ExitCode.CONFIG,
            )
        self.shape = (tiers, config.state, dim // tiers)
        self.key = _normal(dim, tiers * config.state)
        self.query = _normal(dim, tiers * config.state)
        self.value = _normal(dim, tiers * self.shape[2])
        self.out = _normal(tiers * self.shape[2], dim)
        rates = math.log(2) / torch.tensor(config.half_lives)
        self.decay = nn.Parameter(torch.zeros(dim, tiers))
        self.decay_bias = nn.Parameter(torch.expm1(rates).log())  # softplus of it is the rate
        self.gate = nn.Parameter(torch.zeros(dim))
        self.dropout = nn.Dropout(config.dropout)

    def inputs(self, x: Tensor, items: Tensor, batch: Batch) -> Tensor:
        """Tokens [B, W, D], each with the gated summary of those up to it."""
        tiers, state, size = self.shape
        q, k = ((x @ w).view(*x.shape[:2], tiers, state) for w in (self.query, self.key))
        v = (x @ self.value).view(*x.shape[:2], tiers, size)
        log_decay = -functional.softplus(x @ self.decay + self.decay_bias)
        y = read_states(q, k, v, log_decay) / math.sqrt(state)
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + _NORM_EPS)
        summary: Tensor = self.dropout(y.flatten(-2) @ self.out)
        return x + self.gate * summary


def read_states(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, chunk: int = _CHUNK) -> Tensor:
    """What the decaying state of each tier answers, M_t^T q_t [B, W, S, d].

    ``q`` and ``k`` are [B, W, S, P], ``v`` [B, W, S, d], ``log_decay`` [B, W, S] at most 0. The
    result does not depend on ``chunk`` beyond rounding.
    """
    state = k.new_zeros(k.shape[0], *k.shape[2:], v.shape[-1])  # [B, S, P, d]
    answers = []
    for start in range(0, k.shape[1], chunk):
        part = slice(start, start + chunk)
        q_c, k_c, v_c = q[:, part], k[:, part], v[:, part]
        age = log_decay[:, part].cumsum(1)  # [B, C, S]
        last = age[:, -1]
        later = torch.ones(age.shape[1], age.shape[1], dtype=torch.bool, device=q.device).triu(1)
        gap = (age[:, :, None] - age[:, None]).masked_fill(later[:, :, None], -torch.inf)
        scores = torch.einsum("bisp,bjsp->bijs", q_c, k_c) * gap.exp()
        inside = torch.einsum("bijs,bjsd->bisd", scores, v_c)
        before = torch.einsum("bisp,bspd->bisd", q_c, state)
        answers.append(inside + age.exp()[..., None] * before)
        kept = (last[:, None] - age).exp()[..., None] * k_c
        state = last.exp()[..., None, None] * state + torch.einsum("bjsp,bjsd->bspd", kept, v_c)
    return torch.cat(answers, dim=1)


def _normal(rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(rows, columns).normal_(std=_INIT_STD))

"""SASRec's layer, the control: softmax attention and a feed-forward layer, blind to time.

Input, output and loss are those of HSTU, so that a comparison of the two compares the layers.
For tokens x, of which a token attends to itself and to what is older:

    q = LN(x)
    y = LN(q + softmax(q W_q (x W_k)' / sqrt(D / H)) x W_v W_o)
    x <- y + W_2 relu(W_1 y)

Keys and values are made of x as it is, and neither norm has parameters. Dropout is on the attention
weights and after each layer of the feed-forward part.

Shapes: B users, W width of the batch, D dim, H heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from hstu.config import ModelConfig
    from hstu.interventions import AttentionTerms
    from hstu.kernels import Relation

_NORM_EPS = 1e-8


class SasrecBlock(nn.Module):
    """One SASRec layer. It reads neither the times nor any added term of the attention."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Parameter(torch.empty(3 * config.dim, config.dim))
        self.qkv_bias = nn.Parameter(torch.zeros(3 * config.dim))
        self.out = nn.Linear(config.dim, config.dim)
        self.inner = nn.Linear(config.dim, config.ffn_width)
        self.outer = nn.Linear(config.ffn_width, config.dim)
        self.dropout = nn.Dropout(config.linear_dropout)
        nn.init.zeros_(self.out.bias)
        for weight in (self.qkv, self.out.weight, self.inner.weight, self.outer.weight):
            nn.init.xavier_normal_(weight)

    def forward(self, x: Tensor, relation: Relation, terms: AttentionTerms) -> Tensor:
        """Map tokens ``x`` [B, W, D] to tokens [B, W, D]."""
        query = functional.layer_norm(x, x.shape[-1:], eps=_NORM_EPS)
        y = query + self.attend(query, x)
        y = functional.layer_norm(y, y.shape[-1:], eps=_NORM_EPS)
        inner = self.dropout(functional.relu(self.inner(y)))
        added: Tensor = self.dropout(self.outer(inner))
        return y + added

    def attend(self, query: Tensor, x: Tensor) -> Tensor:
        """Mix tokens ``x`` [B, W, D] for the queries made of ``query`` [B, W, D]."""
        sources = (query, x, x)
        parts = zip(sources, self.qkv.chunk(3), self.qkv_bias.chunk(3), strict=True)
        q, k, v = (
            functional.linear(source, weight, bias)
            .view(*x.shape[:2], self.heads, -1)
            .transpose(1, 2)  # [B, H, W, D / H]
            for source, weight, bias in parts
        )
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        newer = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        attention = self.dropout(scores.masked_fill(newer, -torch.inf).softmax(-1))
        mixed: Tensor = self.out((attention @ v).transpose(1, 2).flatten(2))
        return mixed

"""HSTU, the sequential transducer that ranks a corpus for a history.

Shapes: B users, W width of the batch (its longest history), N the fixed width of the reference
(history length + out_len), D dim, H heads, X items of the corpus. Item index 0 is padding.

The order of a user's events is the order in time, oldest first, padded on the right. Because no
token looks to its right, padding never reaches a valid token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from hstu.data.batches import Batch
    from hstu.data.items import Items
    from hstu.models.config import ExperimentConfig, ModelConfig

_TIME_BUCKETS = 128
_BUCKET_WIDTH = 0.301
_NORM_EPS = 1e-6
_INIT_STD = 0.02


def unit(vectors: Tensor) -> Tensor:
    """``vectors`` [..., D] scaled to length 1; a zero vector stays zero."""
    lengths = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    scaled: Tensor = vectors / lengths.clamp(min=_NORM_EPS)
    return scaled


def time_buckets(timestamps: Tensor, next_timestamps: Tensor) -> Tensor:
    """Logarithmic buckets [B, W, W] of the seconds from key j to the moment query i is asked for.

    The difference is taken in int64 and the logarithm in float32, as in the reference: a float64
    logarithm gives other buckets next to a boundary.
    """
    gaps = (next_timestamps[:, :, None] - timestamps[:, None, :]).abs().clamp(min=1)
    buckets = (gaps.float().log() / _BUCKET_WIDTH).long()
    return buckets.clamp(max=_TIME_BUCKETS)


class Block(nn.Module):
    """One HSTU layer: pointwise SiLU attention with a time and position bias, gated by u."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.dqk, self.dv = config.heads, config.dqk, config.dv
        self.width = config.width
        inner = config.heads * (2 * config.dv + 2 * config.dqk)
        self.uvqk = nn.Parameter(torch.empty(config.dim, inner).normal_(std=_INIT_STD))
        self.time_bias = nn.Parameter(torch.empty(_TIME_BUCKETS + 1).normal_(std=_INIT_STD))
        self.position_bias = nn.Parameter(torch.empty(2 * config.width - 1).normal_(std=_INIT_STD))
        self.dropout = nn.Dropout(config.linear_dropout)
        self.out = nn.Linear(config.heads * config.dv, config.dim)
        nn.init.xavier_uniform_(self.out.weight)

    def forward(self, x: Tensor, buckets: Tensor) -> Tensor:
        """Map tokens ``x`` [B, W, D] to tokens [B, W, D]; ``buckets`` [B, W, W]."""
        batch, width, _ = x.shape
        normed = functional.layer_norm(x, x.shape[-1:], eps=_NORM_EPS)
        sizes = [self.heads * size for size in (self.dv, self.dv, self.dqk, self.dqk)]
        u, v, q, k = torch.split(functional.silu(normed @ self.uvqk), sizes, dim=-1)
        q, k, v = (part.view(batch, width, self.heads, -1).transpose(1, 2) for part in (q, k, v))

        scores = q @ k.transpose(-1, -2) + self.bias(buckets)[:, None]  # [B, H, W, W]
        # The divisor is N, never the width of this batch: a user's output has no batch mates.
        attention = functional.silu(scores).tril()
        mixed = (
            (attention @ (v / self.width)).transpose(1, 2).reshape(batch, width, -1)
        )  # [B, W, H * dv]
        gated = u * functional.layer_norm(mixed, mixed.shape[-1:], eps=_NORM_EPS)
        added: Tensor = self.out(self.dropout(gated))
        return x + added

    def bias(self, buckets: Tensor) -> Tensor:
        """The relative bias [B, W, W] of query i and key j, shared by the heads."""
        width = buckets.shape[-1]
        place = torch.arange(width, device=buckets.device)
        offset = self.width - 1 + place[None, :] - place[:, None]
        by_time = self.time_bias.index_select(0, buckets.flatten()).view(buckets.shape)
        return by_time + self.position_bias[offset]


class Hstu(nn.Module):
    """The network: item and position embeddings, a stack of blocks, unit-length output."""

    item_genres: Tensor

    def __init__(self, config: ExperimentConfig, items: Items) -> None:
        super().__init__()
        model = config.model
        self.config = config
        self.items = nn.Embedding(len(items.ids) + 1, model.dim)
        nn.init.trunc_normal_(self.items.weight, std=_INIT_STD, a=-2 * _INIT_STD, b=2 * _INIT_STD)
        self.positions = nn.Parameter(torch.empty(model.width, model.dim))
        nn.init.xavier_normal_(self.positions)
        self.dropout = nn.Dropout(model.input_dropout)
        self.blocks = nn.ModuleList(Block(model) for _ in range(model.blocks))
        genres = torch.as_tensor(items.genres, dtype=torch.float32)  # [X, G]
        self.register_buffer("item_genres", functional.pad(genres, (0, 0, 1, 0)), persistent=False)

    @property
    def device(self) -> torch.device:
        """Where the parameters live."""
        return self.positions.device

    def embed_items(self, ids: Tensor) -> Tensor:
        """Item vectors [..., D] of item indices: what a history is made of and a target is."""
        rows: Tensor = self.items(ids)
        return rows

    def item_table(self) -> Tensor:
        """Vectors [X + 1, D] of all items: what negatives are drawn from and the corpus is."""
        return self.items.weight

    def embed_inputs(self, batch: Batch) -> Tensor:
        """Tokens [B, W, D]: scaled item vectors plus positions, zero in padding."""
        x = self.embed_items(batch.items) * self.config.model.dim**0.5
        x = x + self.positions[: batch.width]
        dropped: Tensor = self.dropout(x)
        return dropped * batch.valid[..., None]

    def encode(self, batch: Batch) -> Tensor:
        """Unit vectors [B, W, D]; position t has seen events 0..t and the time of the next one."""
        x = self.embed_inputs(batch)
        buckets = time_buckets(batch.timestamps, batch.next_timestamps)
        for block in self.blocks:
            x = block(x, buckets)
        return unit(x * batch.valid[..., None])

    def query(self, batch: Batch) -> Tensor:
        """The user's vector [B, D] at the request: the output of the last event."""
        encoded = self.encode(batch)
        rows = torch.arange(len(batch.lengths), device=encoded.device)
        return encoded[rows, batch.lengths - 1]

    def score_corpus(self, queries: Tensor) -> Tensor:
        """Cosine [B, X] of each query [B, D] with each item; column x is item index x + 1."""
        return queries @ unit(self.item_table()[1:]).T


def build(config: ExperimentConfig, items: Items) -> Hstu:
    """A freshly initialised network for this corpus; draws from torch's global generator."""
    return Hstu(config, items)

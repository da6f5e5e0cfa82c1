"""HSTU, the sequential transducer that ranks a corpus for a history.

Shapes: B users, W width of the batch (its longest history), N the fixed width of the reference
(history length + out_len), D dim, H heads, X items of the corpus. Item index 0 is padding.

The order of a user's events is the order in time, oldest first, padded on the right. Because no
token looks to its right, padding never reaches a valid token.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from hstu.data.errors import ExitCode, HstuError
from hstu.interventions import AttentionTerms, Intervention, build_interventions
from hstu.kernels import (
    NORM_EPS,
    TIME_BUCKETS,
    Bias,
    Relation,
    Shape,
    gated_attention,
    relate,
)
from hstu.models.sasrec import SasrecBlock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hstu.config import ExperimentConfig, ModelConfig
    from hstu.data.batches import Batch
    from hstu.data.items import Items

_INIT_STD = 0.02


def unit(vectors: Tensor) -> Tensor:
    """``vectors`` [..., D] scaled to length 1; a zero vector stays zero."""
    lengths = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    scaled: Tensor = vectors / lengths.clamp(min=NORM_EPS)
    return scaled


class Block(nn.Module):
    """One HSTU layer: pointwise SiLU attention with a time and position bias, gated by u."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.shape = Shape(
            config.heads, config.dqk, config.dv, divisor=config.width, concat_ua=config.concat_ua
        )
        inner = config.heads * (2 * config.dv + 2 * config.dqk)
        self.uvqk = nn.Parameter(torch.empty(config.dim, inner).normal_(std=_INIT_STD))
        self.time_bias = nn.Parameter(torch.empty(TIME_BUCKETS + 1).normal_(std=_INIT_STD))
        self.position_bias = nn.Parameter(torch.empty(2 * config.width - 1).normal_(std=_INIT_STD))
        self.dropout = nn.Dropout(config.linear_dropout)
        parts = 3 if config.concat_ua else 1
        self.out = nn.Linear(parts * config.heads * config.dv, config.dim)
        nn.init.xavier_uniform_(self.out.weight)

    def forward(self, x: Tensor, relation: Relation, terms: AttentionTerms) -> Tensor:
        """Map tokens ``x`` [B, W, D] to tokens [B, W, D]."""
        gated = gated_attention(self.project(x), self.bias, relation, self.shape, **terms._asdict())
        added: Tensor = self.out(self.dropout(gated))
        return x + added

    def project(self, x: Tensor) -> Tensor:
        """The normed tokens [B, W, D] times the weights: [B, W, H * (2 dv + 2 dqk)]."""
        return functional.layer_norm(x, x.shape[-1:], eps=NORM_EPS) @ self.uvqk

    @property
    def bias(self) -> Bias:
        """The relative bias."""
        return Bias(self.time_bias, self.position_bias)


class Hstu(nn.Module):
    """The network: item and position embeddings, a stack of blocks, unit-length output."""

    item_genres: Tensor

    def __init__(self, config: ExperimentConfig, items: Items) -> None:
        super().__init__()
        model = config.model
        self.config = config
        self.products = torch.float32
        self.items = nn.Embedding(len(items.ids) + 1, model.dim)
        nn.init.trunc_normal_(self.items.weight, std=_INIT_STD, a=-2 * _INIT_STD, b=2 * _INIT_STD)
        self.positions = nn.Parameter(torch.empty(model.width, model.dim))
        _init_positions(self.positions, model)
        self.dropout = nn.Dropout(model.input_dropout)
        block = SasrecBlock if model.encoder == "sasrec" else Block
        self.blocks = nn.ModuleList(block(model) for _ in range(model.blocks))
        genres = torch.as_tensor(items.genres, dtype=torch.float32)  # [X, G]
        self.register_buffer("item_genres", functional.pad(genres, (0, 0, 1, 0)), persistent=False)
        self.interventions = build_interventions(config, items)
        if model.encoder == "sasrec":
            _refuse_attention_terms(self.interventions)

    @property
    def device(self) -> torch.device:
        """Where the parameters live."""
        return self.positions.device

    @property
    def changes(self) -> Iterator[Intervention]:
        """The interventions that are on, in their order."""
        return cast("Iterator[Intervention]", iter(self.interventions.values()))

    def embed_items(self, ids: Tensor) -> Tensor:
        """Item vectors [..., D] of item indices: what a history is made of and a target is."""
        vectors = self._rows(ids)
        for change in self.changes:
            vectors = change.lookup(vectors, ids)
        return vectors

    def _rows(self, ids: Tensor) -> Tensor:
        """Rows [..., D] of the item table."""
        rows: Tensor = self.items(ids)
        return rows

    def item_table(self) -> Tensor:
        """Vectors [X + 1, D] of all items: what negatives are drawn from and the corpus is."""
        return self.items.weight

    def embed_inputs(self, batch: Batch) -> Tensor:
        """Tokens [B, W, D]: scaled item vectors plus positions, zero in padding."""
        x = self.embed_items(batch.items)
        for change in self.changes:
            x = change.items(x, batch)
        items, x = x, x * self.config.model.dim**0.5
        x = x + self.positions[: batch.width]
        x = self.dropout(x)
        for change in self.changes:
            x = change.inputs(x, items, batch)
        return x * batch.valid[..., None]

    def encode(self, batch: Batch) -> Tensor:
        """Unit vectors [B, W, D]; position t has seen events 0..t and the time of the next one."""
        x = self.embed_inputs(batch)
        relation = relate(batch.timestamps, batch.next_timestamps, batch.lengths)
        for number, block in enumerate(self.blocks):
            terms = self._terms(batch, number)
            with self._precision():
                x = block(x, relation, terms)
        for change in self.changes:
            x = change.outputs(x, batch)
        return unit(x * batch.valid[..., None])

    def _precision(self) -> AbstractContextManager[object]:
        """Where the blocks compute: their matrix products are of type ``products``.

        Parameters, tokens, norms and the attention's bias are float32 all the same.
        """
        if self.products is torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, self.products)

    def _terms(self, batch: Batch, block: int) -> AttentionTerms:
        found = [terms for c in self.changes if (terms := c.attention(batch, block)) is not None]
        added, factor = None, None
        for terms in found:
            if terms.added is not None:
                added = terms.added if added is None else added + terms.added
            if terms.factor is not None:
                factor = terms.factor if factor is None else factor * terms.factor
        return AttentionTerms(added, factor)

    def query(self, batch: Batch) -> Tensor:
        """The user's vector [B, D] at the request: the output of the last event.

        With views, it is the direction of the sum of theirs.
        """
        queries = [self._last(view) for view in self.views(batch)]
        return queries[0] if len(queries) == 1 else unit(torch.stack(queries).sum(0))

    def views(self, batch: Batch) -> list[Batch]:
        """The batches whose queries are averaged: ``batch`` alone, unless interventions add."""
        views = [batch]
        for change in self.changes:
            views = [wider for view in views for wider in change.views(view)]
        return views

    def _last(self, batch: Batch) -> Tensor:
        encoded = self.encode(batch)
        rows = torch.arange(len(batch.lengths), device=encoded.device)
        return encoded[rows, batch.lengths - 1]

    def score_corpus(self, queries: Tensor) -> Tensor:
        """Cosine [B, X] of each query [B, D] with each item; column x is item index x + 1."""
        return queries @ unit(self.item_table()[1:]).T


def _init_positions(positions: Tensor, model: ModelConfig) -> None:
    """The reference draws them for every encoder, and HSTU then draws its own."""
    if model.encoder == "sasrec":
        std = model.dim**-0.5
        nn.init.trunc_normal_(positions, std=std, a=-2 * std, b=2 * std)
    else:
        nn.init.xavier_normal_(positions)


def _refuse_attention_terms(interventions: nn.ModuleDict) -> None:
    """Raise ``HstuError`` for an intervention that SASRec's layers would silently ignore."""
    for name, change in interventions.items():
        if type(cast("Intervention", change)).attention is not Intervention.attention:
            raise HstuError(
                "it changes HSTU's attention, which encoder sasrec does not have",
                where=f"interventions.{name}",
                hint="remove it, or set model.encoder to hstu",
                exit_code=ExitCode.CONFIG,
            )


def build(config: ExperimentConfig, items: Items) -> Hstu:
    """A freshly initialised network for this corpus; draws from torch's global generator."""
    return Hstu(config, items)

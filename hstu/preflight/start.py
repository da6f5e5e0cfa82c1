"""The loss that an untrained network must have, from random tables, without the tree's model.

Shapes: B users, W width of the batch, D dim, X items of the corpus.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from hstu.config import ModelConfig
    from hstu.data.batches import TrainingBatch
    from hstu.preflight.bench import Bench

_COLLISION = -1e9
_ROUNDS = 30  # of drawing again what a row holds; few are left after as many


def table_loss(bench: Bench, seed: int) -> float:
    """The mean loss of a token with tables, layers and negatives drawn from ``seed``."""
    model, corpus, draw = bench.config.model, len(bench.items), _Draws(seed)
    batch, drawn = strangers(bench, draw.generator)
    table = draw.truncated(0.02, corpus + 1, model.dim)
    if model.encoder == "sasrec":
        positions = draw.truncated(model.dim**-0.5, model.width, model.dim)
    else:
        positions = draw.xavier(model.width, model.dim)

    inputs, valid = batch.inputs, batch.inputs.valid
    tokens = table[inputs.items] * math.sqrt(model.dim) + positions[: inputs.width]
    layer = _sasrec if model.encoder == "sasrec" else _hstu
    for _ in range(model.blocks):
        tokens = layer(tokens, model, draw)
    query, rows = (functional.normalize(part, dim=-1) for part in (tokens[valid], table))
    targets = batch.targets[valid]
    scores = query @ rows.T / model.temperature
    others = scores.gather(1, drawn).masked_fill(drawn == targets[:, None], _COLLISION)
    logits = torch.cat([scores.gather(1, targets[:, None]), others], dim=1)
    return float(-logits.log_softmax(1)[:, 0].mean())


def strangers(bench: Bench, generator: torch.Generator) -> tuple[TrainingBatch, Tensor]:
    """The batch with labels at random, and negatives [T, R], none of them an item of its row.

    An untrained query still resembles what it was made from. How much depends on the network: one
    that pools the history is nearer to each of its items, and further from the newest. Labels that
    repeat the history, or negatives out of it, would make that a matter of the first loss.
    """
    batch, corpus = bench.batch(), len(bench.items)
    valid = batch.inputs.valid
    rows = valid.nonzero()[:, 0]
    held = batch.inputs.items[rows]
    shape = (len(rows), 1 + bench.config.train.negatives)
    drawn = torch.randint(1, corpus + 1, shape, generator=generator)
    for _ in range(_ROUNDS):
        known = (drawn[..., None] == held[:, None]).any(-1)
        drawn[known] = torch.randint(1, corpus + 1, (int(known.sum()),), generator=generator)
    targets = torch.zeros_like(batch.targets)
    targets[valid] = drawn[:, 0]
    return batch._replace(targets=targets), drawn[:, 1:]


class _Draws:
    """Random tensors from one seed."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, std: float, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator) * std

    def uniform(self, bound: float, *shape: int) -> Tensor:
        return (torch.rand(shape, generator=self.generator) * 2 - 1) * bound

    def truncated(self, std: float, *shape: int) -> Tensor:
        """Normal, cut at two deviations."""
        cut = 2 * std
        made = torch.empty(shape)
        return nn.init.trunc_normal_(made, std=std, a=-cut, b=cut, generator=self.generator)

    def xavier(self, rows: int, columns: int) -> Tensor:
        return self.normal(math.sqrt(2 / (rows + columns)), rows, columns)


def _hstu(x: Tensor, model: ModelConfig, draw: _Draws) -> Tensor:
    """Tokens [B, W, D] after one block; its relative bias is drawn anew for every pair."""
    width, heads = x.shape[1], model.heads
    sizes = [heads * size for size in (model.dv, model.dv, model.dqk, model.dqk)]
    projected = functional.layer_norm(x, x.shape[2:]) @ draw.normal(0.02, model.dim, sum(sizes))
    u, v, q, k = torch.split(functional.silu(projected), sizes, dim=-1)
    q, k, v = (part.view(*x.shape[:2], heads, -1) for part in (q, k, v))
    bias = draw.normal(0.02 * math.sqrt(2), width, width)
    scores = torch.einsum("bihd,bjhd->bhij", q, k) + bias
    attention = functional.silu(scores).tril() / model.width
    mixed = torch.einsum("bhij,bjhd->bihd", attention, v).flatten(2)
    a = functional.layer_norm(mixed, mixed.shape[2:], eps=1e-6)
    made = torch.cat([u, a, u * a], dim=-1) if model.concat_ua else u * a
    inner = made.shape[-1]
    weight = draw.uniform(math.sqrt(6 / (inner + model.dim)), inner, model.dim)
    return x + made @ weight + draw.uniform(1 / math.sqrt(inner), model.dim)


def _sasrec(x: Tensor, model: ModelConfig, draw: _Draws) -> Tensor:
    """Tokens [B, W, D] after one layer; at the start its attention is that of one head."""
    dim, width = model.dim, x.shape[1]
    query = functional.layer_norm(x, [dim])
    q, k, v = (source @ draw.normal(math.sqrt(2 / (4 * dim)), dim, dim) for source in (query, x, x))
    scores = q @ k.transpose(1, 2) / math.sqrt(dim)
    future = torch.ones(width, width).triu(1).bool()
    mixed = scores.masked_fill(future, -torch.inf).softmax(-1) @ v @ draw.xavier(dim, dim)
    y = functional.layer_norm(query + mixed, [dim])
    inner = y @ draw.xavier(dim, model.ffn_width) + draw.uniform(dim**-0.5, model.ffn_width)
    outer = inner.relu() @ draw.xavier(model.ffn_width, dim)
    return y + outer + draw.uniform(model.ffn_width**-0.5, dim)

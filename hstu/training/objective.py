"""What training minimises, and with what.

Preflight measures a changed model through these functions, so their signatures are fixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hstu.losses import sampled_softmax
from hstu.models.hstu import unit

if TYPE_CHECKING:
    from torch import Tensor

    from hstu.config import TrainConfig
    from hstu.data.batches import TrainingBatch
    from hstu.models import Hstu

_ADAM_EPS = 1e-8


def draw_negatives(
    batch: TrainingBatch, items: int, count: int, generator: torch.Generator
) -> Tensor:
    """Item indices [T, count], uniform over 1..``items`` with replacement.

    T is the number of supervised tokens: the valid ones of ``batch`` in row order.
    """
    tokens = int(batch.inputs.lengths.sum())
    return torch.randint(1, items + 1, (tokens, count), generator=generator)


def training_loss(model: Hstu, batch: TrainingBatch, negatives: Tensor) -> Tensor:
    """Loss of each supervised token [T], in row order; ``negatives`` [T, R] are item indices."""
    valid = batch.inputs.valid
    targets = batch.targets[valid]
    return sampled_softmax(
        model.encode(batch.inputs)[valid],
        unit(model.embed_items(targets)),
        unit(model.item_table()),
        targets,
        negatives,
        temperature=model.config.model.temperature,
    )


def token_weights(model: Hstu, batch: TrainingBatch, losses: Tensor) -> Tensor | None:
    """Weights [T] of the supervised tokens' ``losses`` [T]; ``None`` when all weigh the same."""
    product = None
    for change in model.changes:
        weights = change.token_weights(losses.detach(), batch)
        if weights is not None:
            product = weights if product is None else product * weights
    return product


def make_optimizer(model: Hstu, config: TrainConfig) -> torch.optim.Optimizer:
    """AdamW over every parameter, in one group."""
    return torch.optim.AdamW(
        model.parameters(),
        lr=config.learning_rate,
        betas=config.betas,
        eps=_ADAM_EPS,
        weight_decay=config.weight_decay,
    )

"""What training minimises, and with what.

Preflight measures a changed model through these functions, so their signatures are fixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch

from hstu.losses import sampled_softmax
from hstu.models.hstu import unit

if TYPE_CHECKING:
    from torch import Tensor

    from hstu.config import TrainConfig
    from hstu.data.batches import TrainingBatch, TrainingRows
    from hstu.models import Hstu

_ADAM_EPS = 1e-8
# Users of like length share a forward pass, which halves the padding of a batch.
_LENGTH_GROUPS = 4


class Step(NamedTuple):
    """One batch: the loss summed over its tokens, their number, and other sums over them."""

    loss: float
    tokens: int
    watched: dict[str, float]


class Objective(Protocol):
    """What a training run minimises."""

    def backward(
        self, model: Hstu, rows: TrainingRows, users: list[int], generator: torch.Generator
    ) -> Step:
        """Add the gradients of the batch ``users`` (row numbers) to the model's parameters."""


class NextItem:
    """The softmax of every token's next item, averaged over the tokens of the batch."""

    def __init__(self, items: int) -> None:
        self._items = items

    def backward(
        self, model: Hstu, rows: TrainingRows, users: list[int], generator: torch.Generator
    ) -> Step:
        """The mean is over the whole batch, whatever groups it is computed in."""
        losses, weights = [], []
        for group in rows.groups(users, _LENGTH_GROUPS):
            draws = model.config.train.negatives
            negatives = draw_negatives(group, self._items, draws, generator).to(model.device)
            batch = group.to(model.device)
            losses.append(training_loss(model, batch, negatives))
            weights.append(token_weights(model, batch, losses[-1]))
        loss, weight = torch.cat(losses), _joined(weights)
        torch.autograd.backward(_mean(loss, weight))
        counted = loss.detach() if weight is None else loss.detach()[weight > 0]
        return Step(float(counted.sum()), len(counted), {})


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


def _joined(weights: list[Tensor | None]) -> Tensor | None:
    """The weights of all groups; an experiment's interventions set them for all or for none."""
    parts = [part for part in weights if part is not None]
    return torch.cat(parts) if parts else None


def _mean(losses: Tensor, weights: Tensor | None) -> Tensor:
    """Mean of ``losses`` [T], weighted by ``weights`` [T] where interventions set them."""
    if weights is None:
        return losses.sum() / len(losses)
    return (weights * losses).sum() / weights.sum()


def make_optimizer(model: Hstu, config: TrainConfig) -> torch.optim.Optimizer:
    """AdamW over every parameter, in one group."""
    return torch.optim.AdamW(
        model.parameters(),
        lr=config.learning_rate,
        betas=config.betas,
        eps=_ADAM_EPS,
        weight_decay=config.weight_decay,
    )

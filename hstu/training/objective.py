"""What training minimises, and with what.

Preflight measures a changed model through these functions, so their signatures are fixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch

from hstu.data.errors import ExitCode, HstuError
from hstu.losses import full_softmax, sampled_softmax, shared_softmax
from hstu.models.hstu import unit
from hstu.models.team import ALONE, Team
from hstu.training.distributed import share

if TYPE_CHECKING:
    from torch import Tensor

    from hstu.config import TrainConfig
    from hstu.data.batches import TrainingBatch, TrainingRows
    from hstu.models import Hstu

_ADAM_EPS = 1e-8
# Users of like length share a forward pass, which halves the padding of a batch.
LENGTH_GROUPS = 4


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
    """The softmax of every token's next item, averaged over the tokens of the batch.

    A member of a ``team`` adds the gradients of its share of the users to that mean.
    """

    def __init__(self, config: TrainConfig, items: int, team: Team = ALONE) -> None:
        self._config = config
        self._items = items
        self._team = team

    def backward(
        self, model: Hstu, rows: TrainingRows, users: list[int], generator: torch.Generator
    ) -> Step:
        """As ``Objective`` says; the step is the member's."""
        loss, weight = self.losses(model, rows.groups(users, LENGTH_GROUPS), generator)
        summed, weighed = weighted_sum(loss, weight)
        (total,) = self._team.total(weighed)
        if not total:
            raise HstuError(
                "no token of a batch counts: all their weights are 0",
                where="interventions",
                hint="turn off what weighs the tokens; focal's weight is 0 where the loss is",
                exit_code=ExitCode.FAILURE,
            )
        if len(loss):
            torch.autograd.backward(summed / total)
        counted = loss.detach() if weight is None else loss.detach()[weight > 0]
        return Step(float(counted.sum()), len(counted), {})

    def losses(
        self, model: Hstu, groups: list[TrainingBatch], generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        """Losses [T] of the tokens of all groups and, where interventions set them, weights [T].

        A member has those of its users, which may be none.
        """
        losses, weights = [], []
        shared = self._shared(generator)
        for group in groups:
            labelled = self._labelled(group, generator)
            negatives = self._own(group, generator) if shared is None else shared
            mine, negatives = share(self._team, labelled, negatives)
            if not len(mine.targets):
                continue
            batch = mine.to(model.device)
            drawn = None if negatives is None else negatives.to(model.device)
            losses.append(training_loss(model, batch, drawn))
            weights.append(token_weights(model, batch, losses[-1]))
        # An experiment's interventions set the weights of all groups or of none.
        parts = [part for part in weights if part is not None]
        loss = torch.cat(losses) if losses else torch.zeros(0, device=model.device)
        return loss, torch.cat(parts) if parts else None

    def _shared(self, generator: torch.Generator) -> Tensor | None:
        if self._config.estimator != "shared":
            return None
        return torch.randint(1, self._items + 1, (self._config.negatives,), generator=generator)

    def _own(self, group: TrainingBatch, generator: torch.Generator) -> Tensor | None:
        if self._config.estimator != "independent":
            return None
        return draw_negatives(group, self._items, self._config.negatives, generator)

    def _labelled(self, group: TrainingBatch, generator: torch.Generator) -> TrainingBatch:
        if self._config.labels == "next_item":
            return group
        drawn = torch.randint(1, self._items + 1, group.targets.shape, generator=generator)
        return group._replace(targets=drawn * group.inputs.valid)


def draw_negatives(
    batch: TrainingBatch, items: int, count: int, generator: torch.Generator
) -> Tensor:
    """Item indices [T, count], uniform over 1..``items`` with replacement.

    T is the number of supervised tokens: the valid ones of ``batch`` in row order.
    """
    tokens = int(batch.inputs.lengths.sum())
    return torch.randint(1, items + 1, (tokens, count), generator=generator)


def training_loss(model: Hstu, batch: TrainingBatch, negatives: Tensor | None) -> Tensor:
    """Loss of each supervised token [T], in row order.

    ``negatives`` are item indices: [T, R] each token's own, [R] the same for all of them, ``None``
    for the whole corpus.
    """
    valid = batch.inputs.valid
    targets = batch.targets[valid]
    queries = model.encode(batch.inputs)[valid]
    positives, table = unit(model.embed_items(targets)), unit(model.item_table())
    temperature = model.config.model.temperature
    if negatives is None:
        return full_softmax(queries, positives, table, targets, temperature=temperature)
    estimate = shared_softmax if negatives.ndim == 1 else sampled_softmax
    return estimate(queries, positives, table, targets, negatives, temperature=temperature)


def token_weights(model: Hstu, batch: TrainingBatch, losses: Tensor) -> Tensor | None:
    """Weights [T] of the supervised tokens' ``losses`` [T]; ``None`` when all weigh the same."""
    product = None
    for change in model.changes:
        weights = change.token_weights(losses.detach(), batch)
        if weights is not None:
            product = weights if product is None else product * weights
    return product


def weighted_sum(losses: Tensor, weights: Tensor | None) -> tuple[Tensor, float]:
    """Sum of ``losses`` [T], weighted where interventions set ``weights`` [T], and of the weights.

    Their quotient is the mean that training minimises.
    """
    if weights is None:
        return losses.sum(), float(len(losses))
    return (weights * losses).sum(), float(weights.sum())


def make_optimizer(model: Hstu, config: TrainConfig) -> torch.optim.Optimizer:
    """AdamW over every parameter, in one group."""
    return torch.optim.AdamW(
        model.parameters(),
        lr=config.learning_rate,
        betas=config.betas,
        eps=_ADAM_EPS,
        weight_decay=config.weight_decay,
    )

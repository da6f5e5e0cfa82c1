"""Fine-tuning on preferences: DPO, IPO or SimPO on pairs that a frozen model helps to find.

A pair is made at every supervised token of the training rows: the item that came next is wanted,
and one that the frozen model ranks high there, but that the user has in none of the training
events, is rejected. Dropout is off for the model and the reference, so that what differs between
them is what was learnt. Weights of interventions apply to the anchor, not to pairs.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from hstu.data.errors import ExitCode, HstuError
from hstu.losses.preference import dpo, ipo, simpo
from hstu.models.hstu import unit
from hstu.training.objective import LENGTH_GROUPS, NextItem, Step, weighted_sum

if TYPE_CHECKING:
    from hstu.config.preference import PreferenceConfig
    from hstu.data.batches import TrainingBatch, TrainingRows
    from hstu.models import Hstu

_SCORES_AT_ONCE = 1 << 21


class Pairs(NamedTuple):
    """What is compared, for P of the T supervised tokens of a batch, in row order."""

    tokens: Tensor
    """[T] bool: the tokens that have a pair."""
    wanted: Tensor
    """[P] item indices."""
    rejected: Tensor
    """[P] item indices."""


class Preference:
    """The preference loss, averaged over the pairs of a batch, and an optional anchor.

    The anchor is the next-item loss of the same rows, times ``section.anchor``.
    """

    def __init__(self, section: PreferenceConfig, model: Hstu, items: int) -> None:
        if items <= section.skip:
            raise _error(
                f"of {items} items none is left to reject: the first {section.skip} are skipped",
                hint="lower train.preference.skip",
            )
        self._section = section
        self.reference = model if section.reference == "policy" else frozen_copy(model)
        self._next_item = NextItem(model.config.train, items)

    def backward(
        self, model: Hstu, rows: TrainingRows, users: list[int], generator: torch.Generator
    ) -> Step:
        """As ``Objective`` says; the tokens of the step are its pairs."""
        if rows.tails is not None:
            raise _error(
                "preference pairs need rows that hold all training events of a user",
                hint="turn the interventions off that add rows",
            )
        model.eval()
        margins, references, groups = [], [], []
        for numbers in rows.alike(users, LENGTH_GROUPS):
            groups.append(rows.batch(numbers))
            batch = groups[-1].to(model.device)
            taken = _taken(rows, numbers, model.items.num_embeddings).to(model.device)
            with torch.no_grad():
                queries = self.reference.encode(batch.inputs)[batch.inputs.valid]
                pairs = mine(self.reference, queries, batch, taken, self._section, generator)
                references.append(_margins(self.reference, queries, pairs))
            queries = model.encode(batch.inputs)[batch.inputs.valid]
            margins.append(_margins(model, queries, pairs))
        return self._step(model, torch.cat(margins), torch.cat(references), groups, generator)

    def _step(
        self,
        model: Hstu,
        margin: Tensor,
        reference: Tensor,
        groups: list[TrainingBatch],
        generator: torch.Generator,
    ) -> Step:
        count = len(margin)
        if count == 0:
            raise _error(
                "a batch has no pair: its users have taken all items that could be rejected",
                hint="raise train.preference.top or train.batch_users",
            )
        losses = self._losses(margin, margin - reference)
        total, watched = losses.mean(), {}
        if self._section.anchor:
            summed, weighed = weighted_sum(*self._next_item.losses(model, groups, generator))
            anchor = summed / weighed
            total = total + self._section.anchor * anchor
            watched["anchor_loss"] = anchor.item() * count
        torch.autograd.backward(total)
        watched["preference_accuracy"] = float((margin > 0).sum())
        watched["delta"] = float((margin.detach() - reference).sum())
        return Step(float(losses.detach().sum()), count, watched)

    def _losses(self, margin: Tensor, delta: Tensor) -> Tensor:
        beta = self._section.beta
        if self._section.loss == "simpo":
            return simpo(margin, beta=beta, gamma=self._section.margin)
        return dpo(delta, beta=beta) if self._section.loss == "dpo" else ipo(delta, beta=beta)


def frozen_copy(model: Hstu) -> Hstu:
    """A copy in evaluation mode that shares no storage with ``model`` and is never trained."""
    return copy.deepcopy(model).eval().requires_grad_(False)


def mine(
    reference: Hstu,
    queries: Tensor,
    batch: TrainingBatch,
    taken: Tensor,
    section: PreferenceConfig,
    generator: torch.Generator,
) -> Pairs:
    """A pair for each supervised token that has an item to reject.

    ``queries`` [T, D] are the reference's, ``taken`` [B, X + 1] marks the items of each user. A
    reject is a uniform draw from ranks skip+1..top of the reference, without those of the user.
    """
    valid = batch.inputs.valid
    users = torch.nonzero(valid)[:, 0]
    table = unit(reference.item_table())[1:]
    top = min(section.top, len(table))
    size = max(1, _SCORES_AT_ONCE // len(table))
    rejected, found = [], []
    for query, user in zip(torch.split(queries, size), torch.split(users, size), strict=True):
        ranked = (query @ table.T).topk(top, dim=1).indices + 1
        candidates = ranked[:, section.skip :]
        allowed = ~taken[user[:, None], candidates]
        draws = torch.rand(candidates.shape, generator=generator).to(allowed.device)
        drawn = draws.masked_fill(~allowed, -1).argmax(dim=1, keepdim=True)
        rejected.append(candidates.gather(1, drawn)[:, 0])
        found.append(allowed.any(dim=1))
    tokens = torch.cat(found)
    return Pairs(tokens, batch.targets[valid][tokens], torch.cat(rejected)[tokens])


def _margins(model: Hstu, queries: Tensor, pairs: Pairs) -> Tensor:
    """f(wanted) - f(rejected) [P], with f the product over the temperature, as in training."""
    query = queries[pairs.tokens]
    wanted, rejected = (
        (query * unit(model.embed_items(item))).sum(-1) for item in (pairs.wanted, pairs.rejected)
    )
    return (wanted - rejected) / model.config.model.temperature


def _taken(rows: TrainingRows, numbers: list[int], columns: int) -> Tensor:
    """[B, X + 1] bool: the items in any of a user's training events, older ones too."""
    taken = torch.zeros(len(numbers), columns, dtype=torch.bool)
    for place, row in enumerate(numbers):
        taken[place, torch.from_numpy(rows.histories[row].item_index)] = True
        taken[place, int(rows.targets[row])] = True
    return taken


def _error(message: str, hint: str) -> HstuError:
    return HstuError(message, where="train.preference", hint=hint, exit_code=ExitCode.CONFIG)

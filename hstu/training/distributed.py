"""Training by several processes: each takes some users of every batch, all take the same step.

Every member draws what a single process would draw for the whole batch and keeps the part of its
users, so that the run is the single process's up to the order of float32 sums. Dropout alone
differs: each member draws its own masks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hstu.data.batches import Batch, TrainingBatch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor, nn

    from hstu.models.team import Team
    from hstu.training.objective import Step


def share(
    team: Team, batch: TrainingBatch, negatives: Tensor | None
) -> tuple[TrainingBatch, Tensor | None]:
    """The member's users of ``batch``, perhaps none, with their tokens' rows of ``negatives``.

    Users are dealt one by one, so that members get histories of like length. Negatives [R] that
    all tokens share are everybody's.
    """
    if team.alone:
        return batch, negatives
    inputs, tails = batch.inputs, batch.tails
    mine = torch.arange(len(inputs.lengths)) % team.members == team.member
    if negatives is not None and negatives.ndim == 2:
        negatives = negatives[mine.repeat_interleave(inputs.lengths)]
    kept = Batch._make(tensor[mine] for tensor in inputs)
    return TrainingBatch(
        kept, batch.targets[mine], None if tails is None else tails[mine]
    ), negatives


def sum_gradients(team: Team, parameters: Iterable[nn.Parameter]) -> None:
    """Give every member the sum of all members' gradients; one that nobody has stays ``None``."""
    if team.alone:
        return
    all_parameters = list(parameters)
    held = torch.tensor([p.grad is not None for p in all_parameters], device=team.device).float()
    team.add(held)
    shared = [p for p, holders in zip(all_parameters, held.tolist(), strict=True) if holders]
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in shared]
    flat = torch.cat([grad.flatten() for grad in grads])
    team.add(flat)
    for parameter, part in zip(shared, torch.split(flat, [p.numel() for p in shared]), strict=True):
        parameter.grad = part.view_as(parameter)


def sum_step(team: Team, step: Step) -> Step:
    """The step of the whole batch, from each member's of its share."""
    loss, tokens, *watched = team.total(step.loss, step.tokens, *step.watched.values())
    return step._replace(
        loss=loss, tokens=int(tokens), watched=dict(zip(step.watched, watched, strict=True))
    )

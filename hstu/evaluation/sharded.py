"""Ranks by several processes that ``torchrun`` started, each with a span of the users.

The sealed evaluation runs one worker and stays the only source of results. This is for a model at
hand, whose users are many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hstu.evaluation.worker import histories_of
from hstu.models import score_histories

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hstu.evaluation.task import Questions
    from hstu.models import Hstu
    from hstu.models.team import Team


def shared_ranks(
    team: Team, model: Hstu, questions: Questions, chunk: int = 128
) -> NDArray[np.int64]:
    """Ranks [U] of all targets, for every member: nobody is left out and nobody counted twice."""
    mine = team.span(len(questions))
    found = np.empty(0, np.int64)
    if mine:
        part = questions.take(np.asarray(mine))
        scores = score_histories(model, histories_of(part.histories, part.items), chunk)
        found = part.ranks(rows.numpy() for rows in scores)
    return np.concatenate(team.gather(found))

"""What each user adds to NDCG@10, seed by seed: what comparisons and noise are computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eop.core.errors import EopError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from eop.stats.ranks import Ranks

_CUT = 10


def contribution(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """What each rank adds to NDCG@10 with one relevant item: 1/log2(rank+1) up to 10, else 0."""
    gain: NDArray[np.float64] = np.where(ranks <= _CUT, 1.0 / np.log2(ranks + 1.0), 0.0)
    return gain


def gains(sides: Sequence[Sequence[Ranks]]) -> list[NDArray[np.float64]]:
    """Contributions of several models, (seeds, users) each, users in the same order.

    Raises ``EOP652`` when a model has no seed, when the users are not the same, or when there are
    fewer than two.
    """
    if not sides or not all(sides):
        raise refused("both sides of a comparison need the ranks of at least one seed")
    users = sides[0][0].users
    for ranks in (ranks for side in sides for ranks in side):
        if not np.array_equal(ranks.users, users):
            odd = np.setxor1d(ranks.users, users)
            raise refused(f"the two sides do not rank the same users; {len(odd)} differ")
    if len(users) < 2:
        raise refused(f"{len(users)} users are too few to compare")
    return [np.stack([contribution(ranks.ranks) for ranks in side]) for side in sides]


def refused(message: str) -> EopError:
    """The error of what cannot be compared."""
    return EopError(
        "EOP652",
        message,
        hint="evaluate both models on the same split and target",
        exit_code=ExitCode.DATA,
    )

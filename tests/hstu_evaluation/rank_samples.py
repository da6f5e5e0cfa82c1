"""Ranks and results for tests, as evaluations leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hstu.evaluation.rank_files import CanonicalRanks, SubsetRanks
from hstu.evaluation.results import Sample

if TYPE_CHECKING:
    from collections.abc import Sequence

SPLIT = "d" * 64


def canonical(
    ranks: Sequence[int],
    *,
    users: Sequence[int] | None = None,
    target: str = "validation",
    split: str = SPLIT,
    corpus: int = 100,
) -> CanonicalRanks:
    """Canonical ranks of users 0, 1, ..."""
    return CanonicalRanks(
        target="test" if target == "test" else "validation",
        split=split,
        corpus=corpus,
        users=np.arange(len(ranks)) if users is None else np.array(users),
        ranks=np.array(ranks),
    )


def subset(ranks: Sequence[int], seed: int = 0) -> SubsetRanks:
    """The same, as a subset."""
    full = canonical(ranks)
    return SubsetRanks(**vars(full), sample=Sample.of(full.users, seed))

"""Paired comparison of two models by the ranks of their targets, user by user.

Seeds are averaged per user first. The interval joins two sources of noise: which users there are,
and which seeds were drawn. With one seed on each side the second is unknown, and the result says
so: such an interval is too narrow to call a gain.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hstu.data.errors import HstuError
from hstu.evaluation.deciles import DECILES
from hstu.evaluation.intervals import HALF_WIDTH, mean_interval, standard_error
from hstu.evaluation.metrics import contributions
from hstu.evaluation.rank_files import CanonicalRanks, SubsetRanks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hstu.evaluation.deciles import TargetDeciles

# Not a union: both sides must be of one kind.
Ranks = TypeVar("Ranks", CanonicalRanks, SubsetRanks)

_LEAST_USERS = 2


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """``difference``: mean over users of the candidate's metric minus the base's.

    ``low`` and ``high`` lie two standard errors from it (about 95 %). ``user_error`` and
    ``seed_error`` are the parts of the ``standard_error``; ``seed_error`` is ``None`` when neither
    side has two seeds. ``seeds`` are those of base and candidate; ``kind`` is canonical or subset.
    """

    kind: str
    target: str
    split: str
    metric: str
    users: int
    seeds: tuple[int, int]
    base: float
    candidate: float
    difference: float
    low: float
    high: float
    standard_error: float
    user_error: float
    seed_error: float | None

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, or ``within the noise``."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "within the noise"

    def to_json(self) -> dict[str, Any]:
        """Plain data; an unknown ``seed_error`` is null."""
        return {**asdict(self), "verdict": self.verdict}


@dataclass(frozen=True, kw_only=True)
class DecileRow:
    """The users whose target item is of one popularity decile; ``None`` where there are too few.

    ``low`` and ``high`` speak of users only.
    """

    decile: int
    users: int
    base: float | None
    candidate: float | None
    difference: float | None
    low: float | None
    high: float | None


def compare(
    base: Sequence[Ranks], candidate: Sequence[Ranks], metric: str = "ndcg@10"
) -> Comparison:
    """Compare two models, each given by the ranks of one or more seeds.

    Raises ``HstuError`` unless all are ranks of the same users, target, split and corpus.
    """
    left, right = _per_user(base, candidate, metric)
    per_user = right.mean(axis=0) - left.mean(axis=0)
    user_error = standard_error(per_user)
    seed_error = _seed_error(left.mean(axis=1), right.mean(axis=1))
    error = math.hypot(user_error, seed_error or 0.0)
    mean = float(per_user.mean())
    return Comparison(
        kind="subset" if isinstance(base[0], SubsetRanks) else "canonical",
        target=base[0].target,
        split=base[0].split,
        metric=metric,
        users=len(per_user),
        seeds=(len(base), len(candidate)),
        base=float(left.mean()),
        candidate=float(right.mean()),
        difference=mean,
        low=mean - HALF_WIDTH * error,
        high=mean + HALF_WIDTH * error,
        standard_error=error,
        user_error=user_error,
        seed_error=seed_error,
    )


def compare_by_decile(
    base: Sequence[Ranks],
    candidate: Sequence[Ranks],
    deciles: TargetDeciles,
    metric: str = "ndcg@10",
) -> list[DecileRow]:
    """The same for the users of each popularity decile of the target item."""
    left, right = (side.mean(axis=0) for side in _per_user(base, candidate, metric))
    _same("split", base[0].split, deciles.split)
    _same("target", base[0].target, deciles.target)
    of_user = deciles.of(base[0].users)
    rows = []
    for decile in range(1, DECILES + 1):
        chosen = of_user == decile
        rows.append(_row(decile, left[chosen], right[chosen]))
    return rows


def _row(decile: int, left: NDArray[np.float64], right: NDArray[np.float64]) -> DecileRow:
    gap = mean_interval(right - left)
    return DecileRow(
        decile=decile,
        users=len(left),
        base=mean_interval(left).mean,
        candidate=mean_interval(right).mean,
        difference=gap.mean,
        low=gap.low,
        high=gap.high,
    )


def _per_user(
    base: Sequence[Ranks], candidate: Sequence[Ranks], metric: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each user adds to the metric: (seeds, users) for each side, users in one order."""
    if not base or not candidate:
        raise HstuError("both sides of a comparison need the ranks of at least one seed")
    first = base[0]
    for ranks in (*base[1:], *candidate):
        _check_alike(first, ranks)
    if len(first.users) < _LEAST_USERS:
        raise HstuError(f"{len(first.users)} user is too few to compare")
    left, right = (
        np.stack([contributions(metric, ranks.ranks, first.corpus) for ranks in side])
        for side in (base, candidate)
    )
    return left, right


def _check_alike(a: CanonicalRanks | SubsetRanks, b: CanonicalRanks | SubsetRanks) -> None:
    _same("kind of evaluation", type(a).__name__, type(b).__name__)
    _same("target", a.target, b.target)
    _same("split", a.split, b.split)
    _same("corpus", a.corpus, b.corpus)
    if not np.array_equal(a.users, b.users):
        odd = len(np.setxor1d(a.users, b.users))
        raise HstuError(f"the two sides do not rank the same users: {odd} differ", hint=_AGAIN)


def _same(what: str, a: object, b: object) -> None:
    if a != b:
        raise HstuError(f"the {what} differs: {a} and {b}", hint=_AGAIN)


_AGAIN = "evaluate both models on the same split, target and users"


def _seed_error(left: NDArray[np.float64], right: NDArray[np.float64]) -> float | None:
    """Standard error of the difference of two means over seeds; their variance is pooled."""
    freedom = len(left) + len(right) - 2
    if not freedom:
        return None
    squares = sum(float(((side - side.mean()) ** 2).sum()) for side in (left, right))
    return math.sqrt(squares / freedom * (1 / len(left) + 1 / len(right)))

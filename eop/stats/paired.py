"""Paired comparison of two models on the same users, with the noise of users and of seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eop.core.errors import EopError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from eop.stats.ranks import Ranks

_CUT = 10
_HALF_WIDTH = 2.0  # standard errors on either side of an interval


@dataclass(frozen=True)
class Difference:
    """Mean NDCG@10 of a minus that of b over the same users.

    ``user_error`` and ``seed_error`` are the two parts of ``standard_error``; ``seed_error`` is
    ``None`` when neither side has two seeds: then the interval speaks of users only.
    ``interval95`` is the mean plus and minus two standard errors. ``seeds``: of a, of b.
    """

    mean: float
    standard_error: float
    interval95: tuple[float, float]
    users: int
    seeds: tuple[int, int]
    user_error: float
    seed_error: float | None


@dataclass(frozen=True)
class NoiseBand:
    """Spread of one model's metric over seeds.

    ``deviation`` is the sample standard deviation and ``half_width`` two of them; both ``None``
    with a single seed (unknown, not zero).
    """

    mean: float
    deviation: float | None
    half_width: float | None
    seeds: int


def contribution(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """What each rank adds to NDCG@10 with one relevant item: 1/log2(rank+1) up to 10, else 0."""
    gain: NDArray[np.float64] = np.where(ranks <= _CUT, 1.0 / np.log2(ranks + 1.0), 0.0)
    return gain


def paired_difference(a: Sequence[Ranks], b: Sequence[Ranks]) -> Difference:
    """Compare two models, each given by one ``Ranks`` per seed.

    Seeds are averaged per user first. The standard error joins the spread over users of those
    differences and the spread of the seeds' means; with both sides' seeds pooled, a side with one
    seed borrows the other's spread. Raises ``EOP652`` when a side is empty, when the users are
    not the same, or when there are fewer than two.
    """
    left, right = _gains(a, b)
    return _difference(left, right, _seed_variance(left, right))


def common_seeds(a: Mapping[int, Ranks], b: Mapping[int, Ranks]) -> list[int]:
    """The seeds that both sides were measured with, in order."""
    return sorted(a.keys() & b.keys())


def same_seed_difference(a: Mapping[int, Ranks], b: Mapping[int, Ranks]) -> Difference:
    """Compare two models on the seeds that both have: what a lucky seed adds, it adds to both.

    The variance over seeds is that of all seeds of either side, so that the seeds left out of the
    mean still say how much training varies. With equal sets of seeds it is ``paired_difference``.
    Raises ``EOP652`` as that does, and when no seed is common.
    """
    common = common_seeds(a, b)
    if not common:
        raise _refused(f"no seed is common to {sorted(a)} and {sorted(b)}")
    left, right = _gains(list(a.values()), list(b.values()))
    rows = [[list(side).index(seed) for seed in common] for side in (a, b)]
    return _difference(left[rows[0]], right[rows[1]], _seed_variance(left, right))


def noise_band(metrics: Sequence[float]) -> NoiseBand:
    """The spread of a metric over seeds (one value a seed, at least one, all finite)."""
    if not metrics or not all(math.isfinite(value) for value in metrics):
        raise _refused(f"a noise band needs finite metrics, one a seed; got {list(metrics)}")
    mean = float(np.mean(metrics))
    if len(metrics) == 1:
        return NoiseBand(mean, None, None, 1)
    deviation = float(np.std(metrics, ddof=1))
    return NoiseBand(mean, deviation, _HALF_WIDTH * deviation, len(metrics))


def _gains(
    a: Sequence[Ranks], b: Sequence[Ranks]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """NDCG@10 contributions, (seeds, users) for each side, users in the same order."""
    if not a or not b:
        raise _refused("both sides of a comparison need the ranks of at least one seed")
    users = a[0].users
    for ranks in [*a, *b]:
        if not np.array_equal(ranks.users, users):
            odd = np.setxor1d(ranks.users, users)
            raise _refused(f"the two sides do not rank the same users; {len(odd)} differ")
    if len(users) < 2:
        raise _refused(f"{len(users)} users are too few to compare")
    return (
        np.stack([contribution(ranks.ranks) for ranks in a]),
        np.stack([contribution(ranks.ranks) for ranks in b]),
    )


def _difference(
    left: NDArray[np.float64], right: NDArray[np.float64], seed_variance: float | None
) -> Difference:
    """The difference of two sides, (seeds, users) each, whose seeds vary by ``seed_variance``."""
    per_user = left.mean(axis=0) - right.mean(axis=0)
    seeds, users = (len(left), len(right)), len(per_user)
    mean = float(per_user.mean())
    user_error = float(per_user.std(ddof=1) / math.sqrt(users))
    seed_error = None
    if seed_variance is not None:
        seed_error = math.sqrt(seed_variance * (1 / seeds[0] + 1 / seeds[1]))
    error = math.hypot(user_error, seed_error or 0.0)
    interval = (mean - _HALF_WIDTH * error, mean + _HALF_WIDTH * error)
    return Difference(mean, error, interval, users, seeds, user_error, seed_error)


def _seed_variance(left: NDArray[np.float64], right: NDArray[np.float64]) -> float | None:
    """Variance of the seeds' means, pooled over both sides; ``None`` with one seed on each."""
    freedom = len(left) + len(right) - 2
    if freedom == 0:
        return None
    means = [side.mean(axis=1) for side in (left, right)]
    return sum(float(((side - side.mean()) ** 2).sum()) for side in means) / freedom


def _refused(message: str) -> EopError:
    return EopError(
        "EOP652",
        message,
        hint="evaluate both models on the same split and target",
        exit_code=ExitCode.DATA,
    )

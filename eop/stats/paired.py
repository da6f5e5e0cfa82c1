"""Paired comparison of two models on the same users, with the noise of users and of seeds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from eop.stats.error import standard_error
from eop.stats.gains import gains, refused
from eop.stats.noise import larger, pooled
from eop.stats.student import quantile, two_sided

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from eop.stats.error import StandardError
    from eop.stats.noise import SeedNoise
    from eop.stats.ranks import Ranks


@dataclass(frozen=True)
class Difference:
    """Mean NDCG@10 of a minus that of b over the same users.

    ``error`` holds no part of seeds when no model has two: then the interval speaks of users only.
    ``seeds``: of a, of b.
    """

    mean: float
    error: StandardError
    users: int
    seeds: tuple[int, int]

    @cached_property
    def interval95(self) -> tuple[float, float]:
        """The 95 % interval of the difference, by Student's t."""
        return self.error.interval95(self.mean)

    @property
    def p(self) -> float:
        """The two-sided p-value: below 0.05 when the interval excludes 0."""
        if self.error.value == 0:
            return 0.0 if self.mean else 1.0
        return two_sided(self.mean / self.error.value, self.error.freedom)

    def detectable(self, level: float, power: float, band: float = 0.0) -> float:
        """The true gain that a test at two-sided ``level``, above ``band``, finds with ``power``.

        It says what this comparison could have seen, from its error alone and not from its mean.
        """
        error, freedom = self.error.value, self.error.freedom
        critical = max(quantile(1 - level / 2, freedom) * error, band)
        return critical + quantile(power, freedom) * error


def paired_difference(
    a: Sequence[Ranks], b: Sequence[Ranks], noise: SeedNoise | None = None
) -> Difference:
    """Compare two models, each given by one ``Ranks`` per seed.

    Seeds are averaged per user first. The standard error joins the spread over users of those
    differences and the spread of the seeds' means. The latter is ``noise``, from more models than
    these two, or what the two themselves show if that is more; a side with one seed borrows it.
    Raises ``EOP652`` when a side is empty, when the users are not the same, or when there are
    fewer than two.
    """
    left, right = gains([a, b])
    return _difference(left, right, larger(pooled([left, right]), noise))


def common_seeds(a: Mapping[int, Ranks], b: Mapping[int, Ranks]) -> list[int]:
    """The seeds that both sides were measured with, in order."""
    return sorted(a.keys() & b.keys())


def same_seed_difference(
    a: Mapping[int, Ranks], b: Mapping[int, Ranks], noise: SeedNoise | None = None
) -> Difference:
    """Compare two models on the seeds that both have: what a lucky seed adds, it adds to both.

    The variance over seeds is that of all seeds of either side, so that the seeds left out of the
    mean still say how much training varies. With equal sets of seeds it is ``paired_difference``.
    Raises ``EOP652`` as that does, and when no seed is common.
    """
    common = common_seeds(a, b)
    if not common:
        raise refused(f"no seed is common to {sorted(a)} and {sorted(b)}")
    left, right = gains([list(a.values()), list(b.values())])
    rows = [[list(side).index(seed) for seed in common] for side in (a, b)]
    own = pooled([left, right])
    return _difference(left[rows[0]], right[rows[1]], larger(own, noise))


def _difference(
    left: NDArray[np.float64], right: NDArray[np.float64], noise: SeedNoise | None
) -> Difference:
    """The difference of two sides, (seeds, users) each, whose seeds vary by ``noise``."""
    per_user = left.mean(axis=0) - right.mean(axis=0)
    seeds = (len(left), len(right))
    error = standard_error(per_user, noise, 1 / seeds[0] + 1 / seeds[1])
    return Difference(float(per_user.mean()), error, len(per_user), seeds)

"""The standard error of a mean over users and seeds, and what it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.stats.student import quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from eop.stats.noise import SeedNoise


@dataclass(frozen=True)
class StandardError:
    """``value`` joins the part of users and that of seeds, on ``freedom`` degrees of freedom.

    ``of_seeds`` is ``None`` when nothing says how much training varies: then ``value`` speaks of
    users only.
    """

    value: float
    freedom: float
    of_users: float
    of_seeds: float | None

    def interval95(self, mean: float) -> tuple[float, float]:
        """The 95 % interval of ``mean``, by Student's t."""
        half = quantile(0.975, self.freedom) * self.value
        return (mean - half, mean + half)


def standard_error(
    per_user: NDArray[np.float64], noise: SeedNoise | None, share: float
) -> StandardError:
    """The error of the mean of ``per_user`` (U,), which seeds move by ``noise``.

    ``share`` is the part of one seed's variance that is left in the mean: 1 over the seeds of a
    model, summed over the models in it.
    """
    users = len(per_user)
    of_users = float(per_user.std(ddof=1) / math.sqrt(users))
    if noise is None:
        return StandardError(of_users, float(users - 1), of_users, None)
    of_seeds = math.sqrt(noise.shared * share)
    value = math.hypot(of_users, of_seeds)
    freedom = _satterthwaite(value, of_users, users - 1, noise.variance * share, noise.freedom)
    return StandardError(value, freedom, of_users, of_seeds)


def _satterthwaite(
    error: float, user_error: float, users_freedom: int, seed_variance: float, seeds_freedom: int
) -> float:
    """Degrees of freedom of a sum of two variances, each estimated on its own.

    What the seeds show counts in full here, also where it is no more than the users' own noise:
    two seeds that agree are no proof that training does not vary.
    """
    parts = user_error**4 / users_freedom + seed_variance**2 / seeds_freedom
    most, least = float(users_freedom), float(min(seeds_freedom, users_freedom))
    return min(most, max(least, error**4 / parts)) if parts else most

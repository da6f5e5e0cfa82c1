"""Means with the noise of which users there are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HALF_WIDTH = 2.0  # standard errors on either side of an interval of about 95 %


class Interval(NamedTuple):
    """A mean and about 95 % around it; ``None`` is unknown, for want of users."""

    mean: float | None
    low: float | None
    high: float | None


def standard_error(values: NDArray[np.float64]) -> float:
    """Standard error of the mean of at least two values."""
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def mean_interval(values: NDArray[np.float64]) -> Interval:
    """The mean of per-user values [U], U may be 0, and two standard errors on either side."""
    if not len(values):
        return Interval(None, None, None)
    mean = float(values.mean())
    if len(values) == 1:
        return Interval(mean, None, None)
    reach = HALF_WIDTH * standard_error(values)
    return Interval(mean, mean - reach, mean + reach)

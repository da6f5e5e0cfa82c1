"""Student's t distribution: tails and quantiles, for degrees of freedom that need not be whole."""

from __future__ import annotations

import math
from statistics import NormalDist

_STEPS = 300  # of the continued fraction; it has converged long before
_PRECISION = 1e-13
_NEAR = 1e-8  # of Newton's last step: the error after it is its square
_TINY = 1e-300


def two_sided(t: float, freedom: float) -> float:
    """The probability of a value at least as far from 0 as ``t``; ``freedom`` is above 0."""
    if math.isinf(t):
        return 0.0
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def upper_tail(t: float, freedom: float) -> float:
    """The probability of a value above ``t``."""
    half = two_sided(t, freedom) / 2
    return half if t >= 0 else 1 - half


def quantile(share: float, freedom: float) -> float:
    """The value that a share of the distribution lies below; ``0 < share < 1``."""
    if share < 0.5:
        return -quantile(1 - share, freedom)
    normal = NormalDist().inv_cdf(share)
    low, high = 0.0, math.inf
    value = normal + (normal**3 + normal) / (4 * freedom)  # the expansion's first term
    for _ in range(_STEPS):
        over = upper_tail(value, freedom) - (1 - share)
        low, high = (value, high) if over > 0 else (low, value)
        step = value + over / _density(value, freedom)  # Newton's, from a convex tail
        if abs(step - value) <= _NEAR * max(1.0, value):
            return step
        value = step if low < step < high else (low + min(high, 2 * value + 1)) / 2
    return value


def _density(t: float, freedom: float) -> float:
    half = (freedom + 1) / 2
    scale = math.exp(math.lgamma(half) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    return scale * math.exp(-half * math.log1p(t * t / freedom))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    # The fraction converges fast on one side of the mean; the other follows by symmetry.
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY

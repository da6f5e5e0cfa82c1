"""How much a model's NDCG@10 moves when nothing is changed but the seed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from eop.stats.gains import gains, refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from eop.stats.ranks import Ranks

_HALF_WIDTH = 2.0  # standard deviations on either side of a band


@dataclass(frozen=True)
class SeedNoise:
    """Variance of one seed's mean, pooled over models that were trained with several seeds each.

    ``variance`` is what the means show, on ``freedom`` degrees of freedom. ``sampling`` is the
    part of it that comes from users who answer differently to each seed; it shrinks with the
    number of users and is in the spread over users already. The rest moves all users together.
    """

    variance: float
    sampling: float
    freedom: int

    @property
    def shared(self) -> float:
        """The variance that no number of users averages out, at least 0."""
        return max(0.0, self.variance - self.sampling)


@dataclass(frozen=True)
class NoiseBand:
    """Spread of one model's metric over seeds: null controls, the same but for the seed.

    ``deviation`` is the sample standard deviation and ``half_width`` two of them; both ``None``
    with a single seed (unknown, not zero). ``twin`` is the largest difference between twins, the
    same seed trained and judged a second time; ``None`` when there is no twin.
    """

    mean: float
    deviation: float | None
    half_width: float | None
    seeds: int
    twin: float | None = None

    def of_difference(self, left: int, right: int) -> float | None:
        """How far apart two null controls of so many seeds may lie; ``None`` when unknown."""
        if self.half_width is None:
            return None
        return max(self.half_width * math.sqrt(1 / left + 1 / right), self.twin or 0.0)


def noise_band(metrics: Sequence[float], twins: Sequence[float] = ()) -> NoiseBand:
    """The spread of a metric over seeds (one value a seed, at least one, all finite).

    ``twins`` are the differences between a seed and its twin.
    """
    if not metrics or not all(math.isfinite(value) for value in (*metrics, *twins)):
        raise refused(f"a noise band needs finite metrics, one a seed; got {list(metrics)}")
    mean = float(np.mean(metrics))
    twin = max(map(abs, twins)) if twins else None
    if len(metrics) == 1:
        return NoiseBand(mean, None, None, 1, twin)
    deviation = float(np.std(metrics, ddof=1))
    return NoiseBand(mean, deviation, _HALF_WIDTH * deviation, len(metrics), twin)


def pooled_half_width(models: Sequence[Sequence[float]]) -> float | None:
    """``NoiseBand.half_width`` from several models, each a value for each of its seeds.

    The variances are pooled by their degrees of freedom; ``None`` when no model has two seeds.
    """
    several = [values for values in models if len(values) > 1]
    freedom = sum(len(values) - 1 for values in several)
    if freedom == 0:
        return None
    spread = sum(float(np.var(values, ddof=1)) * (len(values) - 1) for values in several)
    return _HALF_WIDTH * math.sqrt(spread / freedom)


def seed_noise(models: Sequence[Sequence[Ranks]]) -> SeedNoise | None:
    """The noise of seeds from several models' own seeds; ``None`` when none has two.

    Raises ``EOP652`` as a comparison does.
    """
    return pooled(gains(models))


def pooled(models: Sequence[NDArray[np.float64]]) -> SeedNoise | None:
    """``seed_noise`` of contributions, (seeds, users) each."""
    freedom = sum(len(model) - 1 for model in models)
    if freedom == 0:
        return None
    users = models[0].shape[1]
    between = within = 0.0
    for model in models:
        means = model.mean(axis=1, keepdims=True) - model.mean()
        between += float((means**2).sum())
        within += float(((model - model.mean(axis=0) - means) ** 2).sum())
    return SeedNoise(between / freedom, within / (freedom * (users - 1)) / users, freedom)


def larger(own: SeedNoise | None, noise: SeedNoise | None) -> SeedNoise | None:
    """The noise that says more, on the degrees of freedom of the larger pool."""
    if own is None or noise is None:
        return own or noise
    if noise.shared >= own.shared:
        return noise
    return replace(own, freedom=max(own.freedom, noise.freedom))

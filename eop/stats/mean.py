"""A model's NDCG@10 with its interval: what another draw of users and seeds would have come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.stats.error import standard_error
from eop.stats.gains import gains
from eop.stats.noise import larger, pooled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eop.stats.noise import SeedNoise
    from eop.stats.ranks import Ranks


def mean_interval(seeds: Sequence[Ranks], noise: SeedNoise | None = None) -> tuple[float, float]:
    """The 95 % interval of a model's mean NDCG@10, given by one ``Ranks`` per seed, within 0 to 1.

    How much seeds vary is ``noise``, from more models than this one, or what its own show if that
    is more; with neither the interval speaks of users only. Two models are never compared by
    whether their intervals overlap: the same users make both (``paired_difference``). Raises
    ``EOP652`` when there is no seed, when the users are not the same, or when there are fewer than
    two.
    """
    (model,) = gains([seeds])
    per_user = model.mean(axis=0)
    error = standard_error(per_user, larger(pooled([model]), noise), 1 / len(model))
    low, high = error.interval95(float(per_user.mean()))
    return max(0.0, low), min(1.0, high)

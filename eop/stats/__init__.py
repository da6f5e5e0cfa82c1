"""Intervals and paired comparisons, to tell a difference from noise."""

from eop.stats.paired import (
    Difference,
    NoiseBand,
    common_seeds,
    contribution,
    noise_band,
    paired_difference,
    same_seed_difference,
)
from eop.stats.ranks import Ranks, read_ranks

__all__ = [
    "Difference",
    "NoiseBand",
    "Ranks",
    "common_seeds",
    "contribution",
    "noise_band",
    "paired_difference",
    "read_ranks",
    "same_seed_difference",
]

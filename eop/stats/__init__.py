"""Intervals and paired comparisons, to tell a difference from noise."""

from eop.stats.paired import (
    Difference,
    NoiseBand,
    contribution,
    noise_band,
    paired_difference,
)
from eop.stats.ranks import Ranks, read_ranks

__all__ = [
    "Difference",
    "NoiseBand",
    "Ranks",
    "contribution",
    "noise_band",
    "paired_difference",
    "read_ranks",
]

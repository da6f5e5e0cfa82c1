"""Intervals and paired comparisons, to tell a difference from noise."""

from eop.stats.gains import contribution
from eop.stats.mean import mean_interval
from eop.stats.multiplicity import benjamini_hochberg, holm
from eop.stats.noise import NoiseBand, SeedNoise, noise_band, pooled_half_width, seed_noise
from eop.stats.paired import Difference, common_seeds, paired_difference, same_seed_difference
from eop.stats.ranks import Ranks, read_ranks

__all__ = [
    "Difference",
    "NoiseBand",
    "Ranks",
    "SeedNoise",
    "benjamini_hochberg",
    "common_seeds",
    "contribution",
    "holm",
    "mean_interval",
    "noise_band",
    "paired_difference",
    "pooled_half_width",
    "read_ranks",
    "same_seed_difference",
    "seed_noise",
]

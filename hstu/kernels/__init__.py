"""The operations that cost most, each with a torch form that says what it computes.

``gated_attention`` is all that a block does between its two projections; ``relate`` prepares a
batch for it. ``hstu.losses`` has the sampled softmax.
"""

from hstu.kernels.attention import (
    NORM_EPS,
    TIME_BUCKETS,
    Bias,
    Relation,
    Shape,
    relative_bias,
    split,
    time_buckets,
)
from hstu.kernels.dispatch import attend, gated_attention, implementation, relate

__all__ = [
    "NORM_EPS",
    "TIME_BUCKETS",
    "Bias",
    "Relation",
    "Shape",
    "attend",
    "gated_attention",
    "implementation",
    "relate",
    "relative_bias",
    "split",
    "time_buckets",
]

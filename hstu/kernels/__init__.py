"""The operations that cost most, each with a torch form that says what it computes.

``relate`` and ``attend`` are pointwise attention. ``gated_attention`` is all that a block does
between its two projections, in one compiled pass where ``can_fuse`` says so. ``hstu.losses`` has
the sampled softmax.
"""

from hstu.kernels.attention import (
    NORM_EPS,
    TIME_BUCKETS,
    Bias,
    Relation,
    Shape,
    relative_bias,
    time_buckets,
)
from hstu.kernels.dispatch import attend, can_fuse, relate
from hstu.kernels.native_attention import gated_attention

__all__ = [
    "NORM_EPS",
    "TIME_BUCKETS",
    "Bias",
    "Relation",
    "Shape",
    "attend",
    "can_fuse",
    "gated_attention",
    "relate",
    "relative_bias",
    "time_buckets",
]

"""The operations that cost most, each with a torch form that says what it computes.

``relate`` and ``attend`` are pointwise attention; ``hstu.losses`` has the sampled softmax.
"""

from hstu.kernels.attention import TIME_BUCKETS, Bias, Relation, relative_bias, time_buckets
from hstu.kernels.dispatch import attend, relate

__all__ = [
    "TIME_BUCKETS",
    "Bias",
    "Relation",
    "attend",
    "relate",
    "relative_bias",
    "time_buckets",
]

"""The two operations that cost most, apart from the modules that use them.

``attend`` mixes values by pointwise attention.
"""

from hstu.kernels.attention import TIME_BUCKETS, Bias, Relation, attend, relative_bias, time_buckets

__all__ = ["TIME_BUCKETS", "Bias", "Relation", "attend", "relative_bias", "time_buckets"]

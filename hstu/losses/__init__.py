"""Training objectives."""

from hstu.losses.sampled_softmax import sampled_softmax

__all__ = ["sampled_softmax"]

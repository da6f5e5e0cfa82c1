"""Training objectives."""

from hstu.losses.full_softmax import full_softmax
from hstu.losses.sampled_softmax import sampled_softmax
from hstu.losses.shared_softmax import shared_softmax

__all__ = ["full_softmax", "sampled_softmax", "shared_softmax"]

"""Training: one experiment config, one seed, one checkpoint."""

from hstu.training.loop import train
from hstu.training.objective import draw_negatives, make_optimizer, training_loss

__all__ = ["draw_negatives", "make_optimizer", "train", "training_loss"]

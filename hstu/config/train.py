"""The ``train`` section: how the network is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hstu.config.preference import PreferenceConfig
from hstu.config.sections import require


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How the network is trained: AdamW on the softmax of each token's next item."""

    epochs: int
    batch_users: int
    learning_rate: float
    betas: tuple[float, float]
    weight_decay: float
    negatives: int
    """Items that a target is compared with, uniform draws."""
    estimator: Literal["independent", "shared", "full"] = "independent"
    """``independent``: every token has ``negatives`` draws of its own, as in the reference.
    ``shared``: all tokens of a batch share them. ``full``: the whole corpus, nothing is drawn."""
    labels: Literal["next_item", "random"] = "next_item"
    """``random`` is a negative control: every target is a uniform draw from the corpus."""
    preference: PreferenceConfig | None = None
    """Set for fine-tuning on preferences, which begins with a checkpoint."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_users", "negatives"):
            require(getattr(self, name) >= 1, f"train.{name}", "must be at least 1")
        require(self.learning_rate > 0, "train.learning_rate", "must be above 0")
        require(self.weight_decay >= 0, "train.weight_decay", "must not be negative")
        require(all(0 <= b < 1 for b in self.betas), "train.betas", "must be in [0, 1)")

"""The ``train`` section: how the network is trained."""

from __future__ import annotations

from dataclasses import dataclass

from hstu.config.sections import require


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How the network is trained: AdamW, ``negatives`` uniform draws for each supervised token."""

    epochs: int
    batch_users: int
    learning_rate: float
    betas: tuple[float, float]
    weight_decay: float
    negatives: int

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_users", "negatives"):
            require(getattr(self, name) >= 1, f"train.{name}", "must be at least 1")
        require(self.learning_rate > 0, "train.learning_rate", "must be above 0")
        require(self.weight_decay >= 0, "train.weight_decay", "must not be negative")
        require(all(0 <= b < 1 for b in self.betas), "train.betas", "must be in [0, 1)")

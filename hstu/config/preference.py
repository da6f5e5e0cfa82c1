"""The ``train.preference`` section: fine-tuning on pairs of a wanted and a rejected item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hstu.config.sections import require


@dataclass(frozen=True, kw_only=True)
class PreferenceConfig:
    """Pairs of the next item and one that the frozen model ranks high but the user never takes."""

    loss: Literal["dpo", "ipo", "simpo"]
    beta: float
    """Scale of the difference of scores; IPO's is the inverse of its target margin, halved."""
    margin: float = 0.0
    """SimPO's target margin, in units of the scaled score."""
    top: int = 50
    """Rejects are drawn from so many of the frozen model's best items ..."""
    skip: int = 3
    """... without the first few, which may be liked."""
    anchor: float = 0.0
    """Weight of the next-item loss beside the pairs', so that the item table does not drift."""
    reference: Literal["frozen", "policy"] = "frozen"
    """What a gain is measured from. ``policy`` is a defect kept as a negative control: the
    reference moves with the model, and nothing is ever gained."""

    def __post_init__(self) -> None:
        key = "train.preference"
        require(self.beta > 0, f"{key}.beta", "must be above 0")
        require(self.skip >= 0, f"{key}.skip", "must not be negative")
        require(self.top > self.skip, f"{key}.top", "must be more than 'skip'")
        require(self.anchor >= 0, f"{key}.anchor", "must not be negative")
        no_margin = self.margin == 0 or self.loss == "simpo"
        require(no_margin, f"{key}.margin", "belongs to the loss 'simpo'")

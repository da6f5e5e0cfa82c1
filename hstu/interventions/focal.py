"""Focal and tail re-weighting: hard tokens and rare targets count more.

    w_t = (1 - p_t)^gamma * (f_y + 1)^(-alpha)

p_t = exp(-loss_t) is the target's probability in the training softmax (among the drawn negatives,
not the corpus) and a constant to the gradient. f_y counts the target in the training events. The
batch's mean weight is divided out when the losses are averaged, so a common factor cancels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hstu.data.errors import ExitCode, HstuError
from hstu.interventions.base import Intervention

if TYPE_CHECKING:
    from hstu.config import ModelConfig
    from hstu.config.interventions import FocalConfig
    from hstu.data.batches import TrainingBatch
    from hstu.data.items import Items


class Focal(Intervention):
    """Weights by difficulty and by rarity."""

    rarity: Tensor

    def __init__(self, section: FocalConfig, model: ModelConfig, items: Items) -> None:
        super().__init__()
        self._gamma = section.gamma
        counts = items.train_counts
        if counts is None:
            raise HstuError(
                "the items carry no counts of the training data",
                where="interventions.focal",
                hint="read them with Items.read(path).counted(files)",
                exit_code=ExitCode.USAGE,
            )
        with_padding = torch.cat([torch.zeros(1), torch.as_tensor(counts)])  # [X + 1]
        rarity = (with_padding + 1) ** -section.alpha
        self.register_buffer("rarity", rarity, persistent=False)

    def token_weights(self, losses: Tensor, batch: TrainingBatch) -> Tensor:
        """Weights [T] of the valid tokens, in row order; no gradient passes through them."""
        hard = (1 - torch.exp(-losses.detach())) ** self._gamma
        return hard * self.rarity[batch.targets[batch.inputs.valid]]

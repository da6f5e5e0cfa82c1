"""MPTA, multi-position training augmentation: rows that end inside a user's training events.

A user's training events i_0..i_m give the row with the history i_0..i_{m-1} and the target i_m. For
each user and epoch, ``rows`` further ends e are drawn, uniform over shortest..m-1: history
i_0..i_{e-1} (the newest L of it), target i_e, positions counted from the first event that is kept.

Only the last ``last`` tokens of such a row count in the loss, since the full row has most of the
others already: what is new is supervision older than the window and other positions. An epoch has
(1 + rows) times as many rows, and so about as many times the optimiser's steps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from hstu.data.batches import History
from hstu.interventions.base import Intervention

if TYPE_CHECKING:
    from torch import Tensor

    from hstu.config import ModelConfig
    from hstu.config.interventions import MptaConfig
    from hstu.data.batches import TrainingBatch, TrainingRows
    from hstu.data.items import Items


class Mpta(Intervention):
    """Adds rows and weighs their tokens."""

    def __init__(self, section: MptaConfig, model: ModelConfig, items: Items) -> None:
        super().__init__()
        self._section = section

    def rows(self, rows: TrainingRows, generator: torch.Generator) -> TrainingRows:
        """The rows, then the extra ones, cut anew at every call."""
        if self._section.rows == 0:
            return rows
        lengths = np.array([len(history.item_index) for history in rows.histories])
        long_enough = np.flatnonzero(lengths > self._section.shortest)
        users = np.tile(long_enough, self._section.rows)
        draws = torch.rand(len(users), generator=generator, dtype=torch.float64).numpy()
        choices = lengths[users] - self._section.shortest
        ends = self._section.shortest + (draws * choices).astype(np.int64)
        cut = [_cut(rows.histories[user], end) for user, end in zip(users, ends, strict=True)]
        targets = [rows.histories[user].item_index[e] for user, e in zip(users, ends, strict=True)]
        everything = lengths if rows.tails is None else rows.tails
        return replace(
            rows,
            histories=[*rows.histories, *cut],
            targets=np.concatenate([rows.targets, np.array(targets, np.int64)]),
            tails=np.concatenate([everything, np.full(len(users), self._section.last)]),
        )

    def token_weights(self, losses: Tensor, batch: TrainingBatch) -> Tensor | None:
        """1 for the tokens [T] that count, 0 for the others; ``None`` when all do."""
        if batch.tails is None:
            return None
        inputs = batch.inputs
        place = torch.arange(inputs.width, device=losses.device)
        counted = place >= (inputs.lengths - batch.tails)[:, None]
        return counted[inputs.valid].to(losses.dtype)


def _cut(history: History, end: int) -> History:
    """What was known before event ``end``."""
    before = slice(0, end)
    return History(history.item_index[before], history.timestamps[before], history.timestamps[end])

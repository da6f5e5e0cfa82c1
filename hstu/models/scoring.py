"""Scores of the whole corpus for histories: the one way in for evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hstu.data.batches import History, collate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from hstu.data.batches import Batch
    from hstu.models.hstu import Hstu

__all__ = ["History", "score_histories"]


def score_histories(
    model: Hstu, histories: Sequence[History], chunk: int = 128
) -> Iterator[Tensor]:
    """Yield scores, float32 [b, X], for ``chunk`` histories at a time, in their order.

    Column x scores item index x + 1; higher is better. The model scores in evaluation mode and
    gets back the mode that it had. Raises ``HstuError`` for an empty history.
    """
    for start in range(0, len(histories), chunk):
        batch = collate(
            histories[start : start + chunk],
            history_length=model.config.model.history_length,
        )
        yield _score(model, batch.to(model.device))


@torch.inference_mode()
def _score(model: Hstu, batch: Batch) -> Tensor:
    training = model.training
    model.eval()
    try:
        return model.score_corpus(model.query(batch)).float().cpu()
    finally:
        model.train(training)

"""Scores of the whole corpus for histories: the one way in for evaluation."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch

from hstu.data.batches import History, collate
from hstu.data.errors import HstuError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from hstu.models.hstu import Hstu

__all__ = ["History", "score_histories"]

# Users whose queries are held at a time: their vectors, not their scores, so a few MiB.
_WINDOW = 4096


def score_histories(
    model: Hstu, histories: Sequence[History], chunk: int = 128
) -> Iterator[Tensor]:
    """Yield scores, float32 [b, X], for ``chunk`` histories at a time, in their order.

    Column x scores item index x + 1; higher is better. The model scores in evaluation mode and
    gets back the mode that it had. Raises ``HstuError`` for an empty history. What is held at a
    time does not depend on the number of histories.
    """
    window = max(1, _WINDOW // chunk) * chunk
    for start in range(0, len(histories), window):
        queries = _queries(model, histories[start : start + window], chunk, start)
        for rows in torch.split(queries, chunk):
            yield _scores(model, rows)


@torch.inference_mode()
def _queries(model: Hstu, histories: Sequence[History], chunk: int, start: int) -> Tensor:
    """Query vectors [b, D] in the order of ``histories``; those of like length are padded together.

    ``start`` is the number of the first history, for errors.
    """
    limit = model.config.model.history_length
    lengths = np.array([min(len(history.item_index), limit) for history in histories])
    if not lengths.all():
        raise HstuError(
            "a history without events cannot be scored",
            where=f"history {start + int(np.argmin(lengths))}",
            hint="leave out users who have no event before the request",
        )
    order = np.argsort(lengths, kind="stable")
    found = []
    with _evaluating(model):
        for rows in np.split(order, range(chunk, len(order), chunk)):
            batch = collate([histories[row] for row in rows], history_length=limit)
            found.append(model.query(batch.to(model.device)))
    back = torch.from_numpy(np.argsort(order)).to(model.device)
    return torch.cat(found)[back]


@torch.inference_mode()
def _scores(model: Hstu, queries: Tensor) -> Tensor:
    with _evaluating(model):
        return model.score_corpus(queries).float().cpu()


@contextmanager
def _evaluating(model: Hstu) -> Iterator[None]:
    """The model in evaluation mode; afterwards in the mode that it had."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)

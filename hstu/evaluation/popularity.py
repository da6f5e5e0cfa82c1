"""The popularity baseline: the same ranking for everybody, by the events before the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from hstu.evaluation.task import Questions

CHUNK_BYTES = 1 << 26


def popularity_scores(questions: Questions) -> NDArray[np.float32]:
    """Scores [X]: the more events of the histories an item has, the higher; no two are equal.

    Of items with equal counts the one that occurs first (by user, then time) comes first, then
    items that never occur, in the order of the corpus.
    """
    size = len(questions.items)
    number = questions.items.index(questions.histories.item_ids) - 1
    counts = np.bincount(number, minlength=size)
    first = np.full(size, len(number))
    occurring, first_place = np.unique(number, return_index=True)
    first[occurring] = first_place
    order = np.lexsort((first, -counts))
    scores = np.empty(size, np.float32)
    scores[order] = np.arange(size, 0, -1)
    return scores


def popularity_chunks(questions: Questions) -> Iterator[NDArray[np.float32]]:
    """The same scores for every user, in chunks [b, X] of bounded size."""
    scores = popularity_scores(questions)
    rows = max(1, CHUNK_BYTES // scores.nbytes)
    for start in range(0, len(questions), rows):
        yield np.broadcast_to(scores, (min(rows, len(questions) - start), len(scores)))

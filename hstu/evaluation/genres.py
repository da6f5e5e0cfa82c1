"""Genres of rejects: whether the items that are wrongly put above a target are like it.

Rejects are the unseen items among a user's best ``top`` that score at least as high as the target.
The Jaccard similarity of their genres with the target's is set beside that of all unseen items,
which is what an item at random would have. Pairs without any genre have no similarity and are left
out; a user without rejects is counted, and in no mean.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hstu.data.errors import HstuError
from hstu.evaluation.evaluator import score
from hstu.evaluation.intervals import mean_interval

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from hstu.evaluation.evaluator import Worker
    from hstu.evaluation.task import CanonicalTask, Questions

TOP = 50
_BLOCK = 1 << 22  # elements of a temporary table


@dataclass(frozen=True, kw_only=True)
class GenreReport:
    """Means over the ``users`` that have rejects with genres; ``others`` have none.

    ``difference`` is rejects minus random, ``low`` and ``high`` two standard errors from it;
    ``None`` where no or one user is left.
    """

    target: str
    split: str
    top: int
    users: int
    others: int
    rejects: float | None
    random: float | None
    difference: float | None
    low: float | None
    high: float | None
    test_reads: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"schema": "hstu.genres/1", **asdict(self)}


def measure_genres(
    task: CanonicalTask, checkpoint: Path, worker: Worker, top: int = TOP
) -> GenreReport:
    """Genre similarity of one checkpoint's rejects; an ``HstuError`` where no item has genres."""
    questions = task.questions
    if not questions.items.genres.any():
        raise HstuError("no item of the split has a genre", hint="this data set cannot tell")

    def similarities(chunks: Iterable[NDArray[np.float32]]) -> NDArray[np.float64]:
        return reject_similarity(questions, chunks, top)

    (scored,) = score(questions, [checkpoint], worker, None, similarities, "genres of rejects")
    return summary(questions, scored.made, top, scored.test_reads)


def summary(
    questions: Questions, similarity: NDArray[np.float64], top: int, test_reads: int | None = None
) -> GenreReport:
    """The report of per-user ``similarity`` [U, 2] (rejects, random; NaN for none)."""
    known = similarity[~np.isnan(similarity).any(axis=1)]
    gap = mean_interval(known[:, 0] - known[:, 1])
    return GenreReport(
        target=questions.target,
        split=questions.split,
        top=top,
        users=len(known),
        others=len(similarity) - len(known),
        rejects=mean_interval(known[:, 0]).mean,
        random=mean_interval(known[:, 1]).mean,
        difference=gap.mean,
        low=gap.low,
        high=gap.high,
        test_reads=test_reads,
    )


def reject_similarity(
    questions: Questions, chunks: Iterable[NDArray[np.float32]], top: int = TOP
) -> NDArray[np.float64]:
    """Mean Jaccard [U, 2] of each user's target with its rejects, and with all unseen items."""
    genres = questions.items.genres.astype(np.float32)
    rows = max(1, _BLOCK // len(genres))
    done, start = [], 0
    for scores in chunks:
        for place in range(0, len(scores), rows):
            block = scores[place : place + rows]
            done.append(_block(questions, genres, block, start + place, top))
        start += len(scores)
    if start != len(questions):
        raise HstuError(f"scores of {start} users, not of {len(questions)}")
    return np.concatenate(done)


def _block(
    questions: Questions,
    genres: NDArray[np.float32],
    scores: NDArray[np.float32],
    start: int,
    top: int,
) -> NDArray[np.float64]:
    """Similarities [b, 2] of the users from ``start``, whose scores [b, X] these are."""
    count = len(scores)
    targets = questions.targets[start : start + count]
    rows = np.arange(count)
    offsets = questions.seen_offsets[start : start + count + 1]
    unseen = np.ones(scores.shape, np.bool_)
    seen = questions.seen_items[offsets[0] : offsets[-1]]
    unseen[np.repeat(rows, np.diff(offsets)), seen] = False
    unseen[rows, targets] = False
    above = unseen & (scores >= scores[rows, targets][:, None])
    similarity = _jaccard(genres[targets], genres)
    rejects = _highest(np.where(above, scores, -np.inf), min(top, scores.shape[1]))
    return np.stack([_mean(similarity, rejects & above), _mean(similarity, unseen)], axis=1)


def _highest(scores: NDArray[np.float32], count: int) -> NDArray[np.bool_]:
    """Which [b, X] are among the ``count`` highest of a row."""
    best = np.argpartition(-scores, count - 1, axis=1)[:, :count]
    found = np.zeros(scores.shape, np.bool_)
    np.put_along_axis(found, best, True, axis=1)
    return found


def _jaccard(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
    """Jaccard similarity [b, X] of genre sets [b, G] and [X, G]; NaN where both are empty."""
    common = one @ other.T
    union = one.sum(axis=1)[:, None] + other.sum(axis=1) - common
    with np.errstate(invalid="ignore"):
        ratio: NDArray[np.float32] = common / union
    return ratio


def _mean(values: NDArray[np.float32], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Mean [b] of the chosen values that there are; NaN where there are none."""
    usable = chosen & ~np.isnan(values)
    counts = usable.sum(axis=1)
    sums = np.where(usable, values, 0).sum(axis=1, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        mean: NDArray[np.float64] = sums / counts
    return mean

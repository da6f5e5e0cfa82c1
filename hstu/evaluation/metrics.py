"""Ranks and the metrics made of them.

The rank of a target is 1 + the number of other unseen corpus items that score at least as high:
a tie counts against the target, so that equal scores earn nothing. Seen are the items of the
user's whole history. The target itself is never filtered out, even when it is in the history (a
repeat), so that every user has a rank.

There is one relevant item a user, so a user's NDCG@k is 1 / log2(rank + 1) up to rank k, else 0;
HR@k is 1 up to rank k, else 0; the reciprocal rank (``mrr``) has no cutoff. A cutoff that the
corpus does not reach is left out: every rank would be a hit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hstu.data.errors import ExitCode, HstuError

if TYPE_CHECKING:
    from numpy.typing import NDArray

NDCG_CUTOFFS = (1, 10, 50, 100, 200)
HR_CUTOFFS = (*NDCG_CUTOFFS, 500, 1000)


def ranks(
    scores: NDArray[np.float32],
    targets: NDArray[np.int64],
    seen_rows: NDArray[np.int64],
    seen_items: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Ranks [b] of ``targets`` [b] by ``scores`` [b, X]; all item numbers are 0 .. X - 1.

    ``seen_rows`` and ``seen_items`` [s] list the seen items, each once a row. A score that is NaN
    or infinite is an ``HstuError``.
    """
    finite = np.isfinite(scores).all(axis=1)
    if not finite.all():
        raise HstuError(
            f"{int((~finite).sum())} of {len(scores)} users have a score that is NaN or infinite, "
            f"first: row {int(np.argmin(finite))}",
            hint="the model diverged, or masks with infinities; scores must be finite",
            exit_code=ExitCode.FAILURE,
        )
    rows = np.arange(len(scores))
    bar = scores[rows, targets]
    ahead = (scores >= bar[:, None]).sum(axis=1, dtype=np.int64)  # the target is one of them
    others = seen_items != targets[seen_rows]
    seen_rows, seen_items = seen_rows[others], seen_items[others]
    filtered = seen_rows[scores[seen_rows, seen_items] >= bar[seen_rows]]
    rank: NDArray[np.int64] = ahead - np.bincount(filtered, minlength=len(scores))
    return rank


def metric_names(corpus: int) -> tuple[str, ...]:
    """The metrics of an evaluation over ``corpus`` items: ``ndcg@10``, ``hr@50``, ``mrr``, ..."""
    ndcg = [f"ndcg@{cutoff}" for cutoff in NDCG_CUTOFFS if cutoff <= corpus]
    hits = [f"hr@{cutoff}" for cutoff in HR_CUTOFFS if cutoff <= corpus]
    return (*ndcg, *hits, "mrr")


def contributions(metric: str, rank: NDArray[np.int64], corpus: int) -> NDArray[np.float64]:
    """What each user [U] adds to the mean; an ``HstuError`` for a metric that there is not."""
    known = metric_names(corpus)
    if metric not in known:
        raise HstuError(
            f"no metric {metric!r} over {corpus} items",
            hint=f"known: {', '.join(known)}",
            exit_code=ExitCode.USAGE,
        )
    kind, _, cutoff = metric.partition("@")
    if kind == "mrr":
        return 1.0 / rank
    hit = rank <= int(cutoff)
    gain: NDArray[np.float64] = np.where(hit, 1.0 / np.log2(rank + 1.0), 0.0)
    return hit.astype(np.float64) if kind == "hr" else gain


def metrics(rank: NDArray[np.int64], corpus: int) -> dict[str, float]:
    """Every metric of the ranks [U] of users over ``corpus`` items; each user counts the same."""
    if not len(rank):
        raise HstuError("no users to evaluate")
    if rank.min() < 1 or rank.max() > corpus:
        raise HstuError(f"ranks {rank.min()} to {rank.max()} are not within 1 to {corpus}")
    return {name: float(contributions(name, rank, corpus).mean()) for name in metric_names(corpus)}

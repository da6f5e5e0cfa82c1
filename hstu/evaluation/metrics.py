"""Ranks and the metrics made of them.

The rank of a target is 1 + the number of other unseen corpus items that score at least as high:
a tie counts against the target, so that equal scores earn nothing. Seen are the items of the
user's whole history. The target itself is never filtered out, even when it is in the history (a
repeat), so that every user has a rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hstu.data.errors import ExitCode, HstuError

if TYPE_CHECKING:
    from numpy.typing import NDArray

CUTOFF = 10


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


def metrics(rank: NDArray[np.int64]) -> dict[str, float]:
    """NDCG@10, HR@10 and MRR of the ranks [U] of all users; each user counts the same.

    There is one relevant item a user, so NDCG@10 is 1 / log2(rank + 1) up to rank 10, else 0.
    """
    if not len(rank):
        raise HstuError("no users to evaluate")
    hit = rank <= CUTOFF
    gain = np.where(hit, 1.0 / np.log2(rank + 1.0), 0.0)
    return {
        f"ndcg@{CUTOFF}": float(gain.mean()),
        f"hr@{CUTOFF}": float(hit.mean()),
        "mrr": float((1.0 / rank).mean()),
    }

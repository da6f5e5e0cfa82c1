"""I7: what a user gets does not depend on who else is in the batch, nor on padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from hstu.data.batches import Batch, collate
from hstu.models import score_histories
from hstu.preflight.bench import Finding

if TYPE_CHECKING:
    from torch import Tensor

    from hstu.data.batches import History
    from hstu.models import Hstu
    from hstu.preflight.bench import Bench

ID = "I7"
TITLE = "batch independence: no effect of batch mates, row order, width or padding"

_TOLERANCE = 1e-5
_EXTRA = 5


def check(bench: Bench) -> Finding:
    """Score the same users in several settings, at the start and with random parameters."""
    width = bench.rows.history_length
    # As many users as events: a (B, D) tensor mistaken for (N, D) then broadcasts silently.
    histories = bench.rows.histories[:width]
    measured: dict[str, float] = {}
    for state, model in bench.states():
        together = _scores(model, histories)
        gaps = {
            "alone": torch.cat([_scores(model, [history]) for history in histories]),
            "reversed": _scores(model, histories[::-1]).flip(0),
            "wider": _padded_scores(model, histories, garbage=False),
            "garbage": _padded_scores(model, histories, garbage=True),
        }
        for setting, scores in gaps.items():
            gap = (scores - together).abs().nan_to_num(nan=torch.inf).max()
            measured[f"{state}/{setting}"] = float(gap)
    problems = [
        f"{name}: scores move by {gap:.2g}" for name, gap in measured.items() if gap > _TOLERANCE
    ]
    return Finding(not problems, "; ".join(problems) or "scores do not move", measured)


def _scores(model: Hstu, histories: list[History]) -> Tensor:
    return torch.cat(list(score_histories(model, histories)))


@torch.no_grad()
def _padded_scores(model: Hstu, histories: list[History], *, garbage: bool) -> Tensor:
    """Scores from a batch with extra columns, whose padding holds zeros or arbitrary events."""
    config = model.config.model
    batch = collate(histories, history_length=config.history_length)
    extra = min(_EXTRA, config.width - batch.width)
    wide = Batch._make([*(functional.pad(part, (0, extra)) for part in batch[:3]), batch.lengths])
    if garbage:
        filler = torch.full_like(wide.items, 1)
        wide = wide._replace(
            items=torch.where(wide.valid, wide.items, filler),
            timestamps=torch.where(wide.valid, wide.timestamps, filler * 10**9),
            next_timestamps=torch.where(wide.valid, wide.next_timestamps, filler),
        )
    return model.eval().score_corpus(model.query(wide))

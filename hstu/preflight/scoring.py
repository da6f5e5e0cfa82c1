"""I5: one scoring function for the target, for negatives and for the corpus.

The loss of a token whose R negatives are all the item j and whose target is i is
``log(1 + R exp(s(j) - s(i)))``. So the loss itself tells the difference of the two scores, through
whatever lookups training uses for the one and for the other. That difference must be the one that
evaluation sees, and must change its sign when i and j change places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hstu.models import score_histories
from hstu.preflight.bench import Finding
from hstu.training import training_loss

if TYPE_CHECKING:
    from torch import Tensor

    from hstu.data.batches import TrainingBatch
    from hstu.models import Hstu
    from hstu.preflight.bench import Bench

ID = "I5"
TITLE = "one scoring function: target, negative and corpus scores agree"

_DRAWS = 8
_NEGATIVES = 4
# Beyond this difference of logits the float32 loss is too flat to tell it.
_READABLE = 7.0
_TOLERANCE = 2e-3
_TINY = 1e-30


def check(bench: Bench) -> Finding:
    """Compare differences of logits for random pairs of items, with all parameters random."""
    batch, generator = bench.batch(), torch.Generator().manual_seed(0)
    corpus_gap, swap_gap, pairs = 0.0, {"eval": 0.0, "train": 0.0}, 0
    model = bench.perturbed()
    corpus = _corpus_scores(bench, model, batch)
    rows = torch.arange(len(corpus))
    for _ in range(_DRAWS):
        i, j = _two_items(batch, len(bench.items), generator)
        last = (rows, batch.inputs.lengths - 1)
        expected = corpus[rows, i[last] - 1] - corpus[rows, j[last] - 1]
        expected = expected / bench.config.model.temperature
        for mode, worst in swap_gap.items():
            model.train(mode == "train")
            forth, back = _difference(model, batch, i, j), _difference(model, batch, j, i)
            readable = torch.minimum(forth.abs(), back.abs()) < _READABLE
            swap_gap[mode] = max(worst, _largest(forth + back, readable & batch.inputs.valid))
            if mode == "eval":
                readable = expected.abs() < _READABLE
                corpus_gap = max(corpus_gap, _largest(forth[last] - expected, readable))
                pairs += int(readable.sum())
    measured = {
        "pairs": pairs,
        "target_vs_negative_eval": swap_gap["eval"],
        "target_vs_negative_train": swap_gap["train"],
        "loss_vs_corpus": corpus_gap,
        "tolerance": _TOLERANCE,
    }
    return _verdict(measured)


@torch.no_grad()
def _corpus_scores(bench: Bench, model: Hstu, batch: TrainingBatch) -> Tensor:
    """Scores [B, X] of the corpus at each row's last event.

    A query that is averaged over views is another one than training's, so there the corpus is
    scored by training's.
    """
    if len(model.views(batch.inputs)) == 1:
        histories = bench.rows.histories[: len(batch.targets)]
        return torch.cat(list(score_histories(model, histories)))
    encoded = model.eval().encode(batch.inputs)
    last = batch.inputs.lengths - 1
    return model.score_corpus(encoded[torch.arange(len(last)), last])


def _verdict(measured: dict[str, float]) -> Finding:
    problems = []
    if not measured["pairs"]:
        problems.append("no pair of items could be compared")
    for name in ("target_vs_negative_eval", "target_vs_negative_train"):
        if not measured[name] <= _TOLERANCE:
            problems.append(
                f"the same item scores differently as target and as negative "
                f"(by {measured[name]:.3g} logits, {name.rsplit('_', 1)[1]} mode)"
            )
    if not measured["loss_vs_corpus"] <= _TOLERANCE:
        problems.append(
            f"training and full-corpus evaluation score items differently "
            f"(by {measured['loss_vs_corpus']:.3g} logits)"
        )
    return Finding(not problems, "; ".join(problems) or "the three scores agree", dict(measured))


def _two_items(
    batch: TrainingBatch, items: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Two different items [B, W] for each token."""
    shape = batch.targets.shape
    i = torch.randint(1, items + 1, shape, generator=generator)
    step = torch.randint(1, items, shape, generator=generator)
    return i, (i - 1 + step) % items + 1


@torch.no_grad()
def _difference(model: Hstu, batch: TrainingBatch, i: Tensor, j: Tensor) -> Tensor:
    """Logit of i as target less logit of j as negative [B, W], read off the loss."""
    valid = batch.inputs.valid
    negatives = j[valid][:, None].expand(-1, _NEGATIVES)
    torch.manual_seed(0)  # equal dropout for both directions
    losses = training_loss(model, batch._replace(targets=i * valid), negatives)
    odds = torch.expm1(losses.double()).clamp(min=_TINY) / _NEGATIVES
    difference = torch.zeros(valid.shape, dtype=torch.float64)
    difference[valid] = -odds.log()
    return difference


def _largest(gaps: Tensor, where: Tensor) -> float:
    """Largest absolute gap; not-a-number counts as infinite."""
    found = gaps[where].abs().nan_to_num(nan=torch.inf)
    return float(found.max()) if len(found) else 0.0

"""I8: the loss starts where it must and cannot fall below what is possible.

Three measurements. The first loss is compared with that of random tables, computed here without
the tree's model; labels and negatives are items that a row does not hold. After a short training
the loss of other users must not have collapsed. And a short training on labels drawn at random
must stay above ``log(1 + R)``: a random label looks like any of its R negatives, so a lower loss
means that training can tell them apart by something other than the history.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from hstu.models import score_histories
from hstu.preflight.bench import Finding
from hstu.preflight.start import strangers, table_loss
from hstu.training import draw_negatives, make_optimizer, training_loss

if TYPE_CHECKING:
    from hstu.data.batches import TrainingBatch
    from hstu.models import Hstu
    from hstu.preflight.bench import Bench

ID = "I8"
TITLE = "loss sanity: expected start, no collapse, nothing learnt from random labels"

_START_TOLERANCE = 0.02
_BUILDS = 16
_TABLES = 32
_STEPS = 40
_LAST = 10
_SPEED_UP = 10.0
_COLLAPSE = 0.5
_FLOOR_TOLERANCE = 0.02
_HITS_AT = 10
_DEVIATIONS = 5.0


def check(bench: Bench) -> Finding:
    """Measure the start, a short training, and a short training on random labels."""
    draws, corpus = bench.config.train.negatives, len(bench.items)
    expected, expected_error = _mean([table_loss(bench, seed) for seed in range(_TABLES)])
    start, start_error = _mean([_first_loss(bench, seed) for seed in range(_BUILDS)])
    model, _ = _short_run(bench, random_labels=False)
    end = _loss(model.eval(), bench, bench.other_batch())
    floor = math.log1p(draws * (1 - 1 / corpus))
    model, random_end = _short_run(bench, random_labels=True)
    hits, hits_bound = _random_hits(model, bench)
    slack = max(_START_TOLERANCE * expected, 3 * math.hypot(expected_error, start_error))
    measured = {
        "start": start,
        "start_expected": expected,
        "start_slack": slack,
        "after_short_run": end,
        "random_labels": random_end,
        "random_labels_floor": floor,
        "random_labels_hr10": hits,
        "random_labels_hr10_bound": hits_bound,
    }
    problems = []
    if not abs(start - expected) <= slack:
        problems.append(f"the first loss is {start:.3f}, expected {expected:.3f} +- {slack:.3f}")
    if not end >= _COLLAPSE:
        problems.append(f"the loss of unseen users collapses to {end:.3f} in {_STEPS} steps")
    if not random_end >= floor * (1 - _FLOOR_TOLERANCE):
        problems.append(
            f"random labels are told from negatives: loss {random_end:.3f} is below {floor:.3f}"
        )
    if not hits <= hits_bound:
        problems.append(f"random labels are ranked: HR@10 {hits:.3f}, at most {hits_bound:.3f}")
    return Finding(not problems, "; ".join(problems) or "as expected", measured)


def _mean(values: list[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    tensor = torch.tensor(values, dtype=torch.float64)
    return float(tensor.mean()), float(tensor.std() / len(values) ** 0.5)


@torch.no_grad()
def _first_loss(bench: Bench, seed: int) -> float:
    batch, negatives = strangers(bench, torch.Generator().manual_seed(seed))
    return float(training_loss(bench.fresh(seed).eval(), batch, negatives).mean())


@torch.no_grad()
def _loss(model: Hstu, bench: Bench, batch: TrainingBatch) -> float:
    generator = torch.Generator().manual_seed(0)
    negatives = draw_negatives(batch, len(bench.items), bench.config.train.negatives, generator)
    return float(training_loss(model, batch, negatives).mean())


def _short_run(bench: Bench, *, random_labels: bool) -> tuple[Hstu, float]:
    """The model after a hurried training, and the mean loss of its last steps."""
    model = bench.fresh().train()
    rate = bench.config.train.learning_rate * _SPEED_UP
    optimizer = make_optimizer(model, replace(bench.config.train, learning_rate=rate))
    generator, losses = torch.Generator().manual_seed(0), []
    corpus, draws = len(bench.items), bench.config.train.negatives
    for _ in range(_STEPS):
        batch = bench.batch()
        if random_labels:
            batch = _relabel(batch, corpus, generator)
        optimizer.zero_grad()
        loss = training_loss(model, batch, draw_negatives(batch, corpus, draws, generator)).mean()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return model, sum(losses[-_LAST:]) / _LAST


def _relabel(batch: TrainingBatch, corpus: int, generator: torch.Generator) -> TrainingBatch:
    labels = torch.randint(1, corpus + 1, batch.targets.shape, generator=generator)
    return batch._replace(targets=labels * batch.inputs.valid)


def _random_hits(model: Hstu, bench: Bench) -> tuple[float, float]:
    """HR@10 of random items under full-corpus scores, and the most that chance would give."""
    scores = torch.cat(list(score_histories(model, bench.rows.histories)))  # [B, X]
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(0, scores.shape[1], (len(scores), 1), generator=generator)
    hits = (scores > scores.gather(1, labels)).sum(1) < _HITS_AT
    share = min(1.0, _HITS_AT / scores.shape[1])
    bound = share + _DEVIATIONS * math.sqrt(share * (1 - share) / len(scores))
    return float(hits.double().mean()), bound

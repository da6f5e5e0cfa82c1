"""Failure overlap: whether users whose target is missed are missed at earlier events too.

With the model frozen, F is the set of users whose target ranks beyond the cutoff, and F_k the same
for the event k steps earlier, given the history before that event. The overlap |F and F_k| / |F|
says nothing by itself: if the two had nothing to do with each other it would be |F_k| / |U|, which
is large for any model that misses often. So both are reported, with their ratio, the lift.

A diagnosis, never a metric and never a reason to choose a model: earlier events are training
labels, so that their ranks are optimistic. Only counts leave this module, no list of users.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hstu.data.errors import HstuError
from hstu.evaluation.evaluator import score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from hstu.evaluation.evaluator import Worker
    from hstu.evaluation.task import CanonicalTask

CUTOFF = 10
_RESAMPLES = 2000
_TAILS = (2.5, 97.5)  # percent, of an interval of 95 %


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Counts of one comparison; ``steps`` are the earlier events, of which any may be missed.

    ``overlap`` = ``both_failed`` / ``target_failed``; ``base_rate`` = ``earlier_failed`` / users is
    what the overlap would be if the target were independent of them; ``independent`` is what it
    would be if the earlier events were independent of each other as well. ``lift`` is overlap /
    base rate. Intervals are 95 % of a bootstrap over users. ``None``: there is no failure.
    """

    steps: tuple[int, ...]
    users: int
    target_failed: int
    earlier_failed: int
    both_failed: int
    base_rate: float
    independent: float
    overlap: float | None
    overlap_interval: tuple[float, float] | None
    lift: float | None
    lift_interval: tuple[float, float] | None


@dataclass(frozen=True, kw_only=True)
class OverlapReport:
    """``too_short`` users have no history before their earliest event and are in no count."""

    target: str
    split: str
    cutoff: int
    users: int
    too_short: int
    labels: dict[str, str]
    test_reads: int | None
    overlaps: tuple[Overlap, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data, counts and shares only."""
        return {"schema": "hstu.overlap/1", **asdict(self)}


def failure_overlap(
    target: NDArray[np.bool_],
    earlier: Mapping[int, NDArray[np.bool_]],
    *,
    seed: int = 0,
) -> list[Overlap]:
    """Overlap of the failures [U] at the target with those at each earlier event, and at any.

    ``earlier`` maps steps back to failures [U] of the same users. ``seed`` is the bootstrap's.
    """
    if not len(target) or not earlier:
        raise HstuError("no users, or no earlier events, to compare failures of")
    groups: list[tuple[int, ...]] = [(steps,) for steps in earlier]
    if len(earlier) > 1:
        groups.append(tuple(earlier))
    return [_overlap(target, steps, earlier, seed) for steps in groups]


def measure_overlap(
    task: CanonicalTask,
    checkpoint: Path,
    worker: Worker,
    steps: Sequence[int] = (1, 2, 3),
    *,
    seed: int = 0,
) -> OverlapReport:
    """Rank the targets and the events ``steps`` before them with one checkpoint; count failures.

    Every event is ranked given the events before it alone, so its seen items are those too.
    """
    if not steps or min(steps) < 1 or len(set(steps)) != len(steps):
        raise HstuError("steps back must be different whole numbers from 1", where=str(steps))
    questions = task.questions
    lengths = np.diff(questions.histories.offsets)
    chosen = np.flatnonzero(lengths > max(steps))
    if not len(chosen):
        raise HstuError(f"no user has more than {max(steps)} events before the target")
    common = questions.take(chosen)
    failed, reads = {}, None
    for step in (0, *steps):
        asked = common.earlier(step) if step else common
        (scored,) = score(asked, [checkpoint], worker, None, asked.ranks, "failure overlap")
        failed[step] = scored.made > CUTOFF
        reads = scored.test_reads if not step else reads
    target = failed.pop(0)
    return OverlapReport(
        target=questions.target,
        split=questions.split,
        cutoff=CUTOFF,
        users=len(chosen),
        too_short=len(questions) - len(chosen),
        labels={str(step): _label(questions.target, step) for step in steps},
        test_reads=reads,
        overlaps=tuple(failure_overlap(target, failed, seed=seed)),
    )


def _label(target: str, step: int) -> str:
    if target == "test" and step == 1:
        return "validation target; a training label if training had the validation events"
    return "training label: its rank is optimistic"


def _overlap(
    target: NDArray[np.bool_],
    steps: tuple[int, ...],
    earlier: Mapping[int, NDArray[np.bool_]],
    seed: int,
) -> Overlap:
    users = len(target)
    missed = np.logical_or.reduce([earlier[step] for step in steps])
    both = int((target & missed).sum())
    target_failed, earlier_failed = int(target.sum()), int(missed.sum())
    rate = earlier_failed / users
    spared = math.prod(1 - float(earlier[step].mean()) for step in steps)
    overlap = both / target_failed if target_failed else None
    cells = np.array([both, target_failed - both, earlier_failed - both, 0])
    cells[3] = users - cells.sum()
    intervals = _intervals(cells, seed) if both else (None, None)
    return Overlap(
        steps=steps,
        users=users,
        target_failed=target_failed,
        earlier_failed=earlier_failed,
        both_failed=both,
        base_rate=rate,
        independent=rate if len(steps) == 1 else 1 - spared,
        overlap=overlap,
        overlap_interval=intervals[0],
        lift=overlap / rate if overlap is not None and rate else None,
        lift_interval=intervals[1],
    )


def _intervals(
    cells: NDArray[np.int64], seed: int
) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """Bootstrap intervals of overlap and lift from the 2 x 2 table of failures.

    To draw users with replacement and count them is to draw the table from a multinomial.
    ``cells``: both failed, the target alone, the earlier alone, neither.
    """
    users = int(cells.sum())
    rng = np.random.Generator(np.random.PCG64(seed))
    both, target, earlier, _ = rng.multinomial(users, cells / users, _RESAMPLES).T
    usable = both > 0  # a draw without failures has no overlap
    both, target, earlier = both[usable], target[usable], earlier[usable]
    overlap = both / (both + target)
    lift = overlap / ((both + earlier) / users)
    return _percentiles(overlap), _percentiles(lift)


def _percentiles(values: NDArray[np.float64]) -> tuple[float, float] | None:
    if not len(values):
        return None
    low, high = np.percentile(values, _TAILS)
    return float(low), float(high)

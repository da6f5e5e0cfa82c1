"""The promotion rule: a champion must beat its parent by more than the noise, on validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.stats import paired_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eop.stats import Difference, Ranks


@dataclass(frozen=True)
class Champion:
    """The entry to beat and its validation ranks, one ``Ranks`` per seed."""

    entry: str
    ranks: Sequence[Ranks]


@dataclass(frozen=True)
class Candidate:
    """A challenger; ``ranks`` is ``None`` when it was not measured (``outcome`` says why)."""

    proposal: str
    entry: str
    outcome: str
    ranks: Sequence[Ranks] | None


def decide(
    parent: Champion, candidates: Sequence[Candidate], *, min_seeds: int = 2
) -> dict[str, Any]:
    """The decision, as data of the schema ``decision``: at most one candidate is promoted.

    It is the one with the largest mean difference among those that completed, have ``min_seeds``
    seeds (as has the parent), and whose 95 % interval of the paired difference in NDCG@10 lies
    above 0. With one seed the spread of training is unknown, so nothing can be told from noise.
    """
    trials = [_trial(parent, candidate, min_seeds) for candidate in candidates]
    eligible = [trial for trial in trials if trial.obstacle is None]
    best = min(eligible, key=_Trial.order).candidate.entry if eligible else None
    return {
        "champion": best or parent.entry,
        "parent": parent.entry,
        "candidates": [_verdict(trial, best) for trial in trials],
    }


@dataclass(frozen=True)
class _Trial:
    """A candidate's comparison with the parent; ``obstacle``: why it cannot be promoted."""

    candidate: Candidate
    difference: Difference | None
    obstacle: str | None

    def order(self) -> tuple[float, str]:
        return (-self.difference.mean if self.difference else 0.0, self.candidate.entry)


def _trial(parent: Champion, candidate: Candidate, min_seeds: int) -> _Trial:
    if candidate.outcome != "completed" or candidate.ranks is None:
        return _Trial(candidate, None, f"not measured: {candidate.outcome}")
    difference = paired_difference(candidate.ranks, parent.ranks)
    return _Trial(candidate, difference, _obstacle(difference, min_seeds))


def _obstacle(difference: Difference, min_seeds: int) -> str | None:
    own, other = difference.seeds
    if min(own, other) < min_seeds:
        return (
            f"{own} seed(s) against {other} of the parent: {min_seeds} of each are needed "
            "to tell a gain from the noise of training"
        )
    low, high = difference.interval95
    if low > 0:
        return None
    side = "lies below 0: worse than the parent" if high < 0 else "holds 0: within the noise"
    return f"{_interval(difference)} {side}"


def _verdict(trial: _Trial, best: str | None) -> dict[str, Any]:
    candidate, difference = trial.candidate, trial.difference
    promoted = candidate.entry == best
    reason = trial.obstacle or f"beats the parent, but by less than {best}"
    if promoted and difference:
        reason = f"{_interval(difference)} lies above 0"
    return {
        "proposal": candidate.proposal,
        "entry": candidate.entry,
        "outcome": candidate.outcome,
        "delta": difference.mean if difference else None,
        "interval": list(difference.interval95) if difference else None,
        "promoted": promoted,
        "reason": reason,
    }


def _interval(difference: Difference) -> str:
    low, high = difference.interval95
    return f"the 95 % interval [{low:+.4f}, {high:+.4f}]"

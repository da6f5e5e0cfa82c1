"""The promotion rule: a champion must beat its parent by more than the noise, on validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.stats import common_seeds, same_seed_difference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eop.stats import Difference, Ranks


@dataclass(frozen=True)
class Champion:
    """The entry to beat and its validation ranks, by seed."""

    entry: str
    ranks: Mapping[int, Ranks]


@dataclass(frozen=True)
class Candidate:
    """A challenger; ``ranks`` by seed, ``None`` when not measured (``outcome`` says why)."""

    proposal: str
    entry: str
    outcome: str
    ranks: Mapping[int, Ranks] | None


def decide(
    parent: Champion, candidates: Sequence[Candidate], *, min_seeds: int = 2
) -> dict[str, Any]:
    """The decision, as data of the schema ``decision``: at most one candidate is promoted.

    It is the one with the largest mean difference among those that completed, share ``min_seeds``
    seeds with the parent, and whose 95 % interval of the paired difference in NDCG@10 over those
    seeds lies above 0. With one seed a gain cannot be told from the noise of training.
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
    seeds: list[int] | None = None

    def order(self) -> tuple[float, str]:
        return (-self.difference.mean if self.difference else 0.0, self.candidate.entry)


def _trial(parent: Champion, candidate: Candidate, min_seeds: int) -> _Trial:
    if candidate.outcome != "completed" or candidate.ranks is None:
        return _Trial(candidate, None, f"not measured: {candidate.outcome}")
    seeds = common_seeds(candidate.ranks, parent.ranks)
    if not seeds:
        return _Trial(candidate, None, "not compared: no seed in common with the parent", seeds)
    difference = same_seed_difference(candidate.ranks, parent.ranks)
    few = None
    if len(seeds) < min_seeds:
        few = (
            f"{len(candidate.ranks)} seed(s) against {len(parent.ranks)} of the parent, "
            f"{len(seeds)} in common: {min_seeds} are needed to tell a gain from the noise of "
            "training"
        )
    return _Trial(candidate, difference, few or _obstacle(difference), seeds)


def _obstacle(difference: Difference) -> str | None:
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
        "seeds": trial.seeds,
        "promoted": promoted,
        "reason": reason,
    }


def _interval(difference: Difference) -> str:
    low, high = difference.interval95
    return f"the 95 % interval [{low:+.4f}, {high:+.4f}]"

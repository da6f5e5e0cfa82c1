"""The promotion rule: a champion must beat its parent by more than the noise, on validation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.stats import common_seeds, holm, same_seed_difference, seed_noise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eop.stats import Difference, NoiseBand, Ranks, SeedNoise

POWER = 0.8  # at which the detectable gain is stated


@dataclass(frozen=True)
class Rule:
    """What a promotion takes.

    ``alpha`` bounds the chance that a turn in which nothing is better promotes something, over all
    candidates of the turn together. ``seeds`` is the least number in common with the parent: with
    one, a gain cannot be told from the noise of training.
    """

    alpha: float = 0.05
    seeds: int = 2


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
    parent: Champion,
    candidates: Sequence[Candidate],
    band: NoiseBand,
    *,
    rule: Rule = Rule(),
    controls: Sequence[Mapping[int, Ranks]] = (),
) -> dict[str, Any]:
    """The decision, as data of the schema ``decision``: at most one candidate is promoted.

    A candidate qualifies when it completed, shares ``rule.seeds`` seeds with the parent, the 95 %
    interval of its paired difference in NDCG@10 lies above 0, it still does after Holm's
    adjustment for all that were compared in this turn, and the difference clears the ``band``
    of the null controls. Of those the one with the largest mean is promoted. How much training
    varies is estimated from all models of the turn together and from ``controls``, which are
    others of the same run; a checkpoint's best moment is never looked at.
    """
    noise = seed_noise(
        [
            list(ranks.values())
            for ranks in (parent.ranks, *controls, *(c.ranks for c in candidates))
            if ranks
        ]
    )
    trials = [_trial(parent, candidate, noise, band, rule) for candidate in candidates]
    tested = [trial for trial in trials if trial.obstacle is None and trial.difference]
    adjusted = dict(
        zip(
            (trial.candidate.entry for trial in tested),
            holm([trial.difference.p for trial in tested if trial.difference]),
            strict=True,
        )
    )
    verdicts = [
        _Verdict(trial, adjusted.get(trial.candidate.entry), len(tested), rule) for trial in trials
    ]
    qualified = [verdict for verdict in verdicts if verdict.against is None]
    best = min(qualified, key=_Verdict.order).trial.candidate.entry if qualified else None
    return {
        "champion": best or parent.entry,
        "parent": parent.entry,
        "rule": {
            "alpha": rule.alpha,
            "seeds": rule.seeds,
            "family": "holm",
            "tests": len(tested),
            "power": POWER,
        },
        "noise": _noise(noise),
        "candidates": [verdict.to_json(best) for verdict in verdicts],
    }


@dataclass(frozen=True)
class _Trial:
    """A candidate's comparison with the parent; ``obstacle``: why it was not put to the test."""

    candidate: Candidate
    difference: Difference | None
    obstacle: str | None
    seeds: list[int] | None = None
    band: float | None = None


@dataclass(frozen=True)
class _Verdict:
    """What a trial came to. ``p_adjusted`` is ``None`` for what was not tested."""

    trial: _Trial
    p_adjusted: float | None
    tests: int
    rule: Rule

    @property
    def against(self) -> str | None:
        """Why the candidate does not qualify, ``None`` when it does."""
        trial, difference = self.trial, self.trial.difference
        if trial.obstacle or difference is None or trial.band is None or self.p_adjusted is None:
            return trial.obstacle or "not compared"
        low, high = difference.interval95
        if low <= 0:
            side = "lies below 0: worse than the parent" if high < 0 else "holds 0"
            return f"{_interval(difference)} {side}{'' if high < 0 else ': within the noise'}"
        if self.p_adjusted > self.rule.alpha:
            return (
                f"{_interval(difference)} lies above 0, but of {self.tests} candidates tried at "
                f"once one would do so by chance: adjusted p {self.p_adjusted:.3f}, at most "
                f"{self.rule.alpha:g} is needed"
            )
        if difference.mean <= trial.band:
            return (
                f"{difference.mean:+.4f} does not clear the noise band of {trial.band:.4f}: null "
                "controls, the same but for the seed, differ by as much"
            )
        return None

    def order(self) -> tuple[float, str]:
        difference = self.trial.difference
        return (-difference.mean if difference else 0.0, self.trial.candidate.entry)

    def to_json(self, best: str | None) -> dict[str, Any]:
        trial, difference = self.trial, self.trial.difference
        promoted = trial.candidate.entry == best
        reason = self.against or f"beats the parent, but by less than {best}"
        if promoted and difference:
            reason = (
                f"{_interval(difference)} lies above 0, adjusted p {self.p_adjusted:.2g} of "
                f"{self.tests}, and {difference.mean:+.4f} clears the noise band of "
                f"{trial.band:.4f}"
            )
        return {
            "proposal": trial.candidate.proposal,
            "entry": trial.candidate.entry,
            "outcome": trial.candidate.outcome,
            "delta": difference.mean if difference else None,
            "interval": list(difference.interval95) if difference else None,
            "seeds": trial.seeds,
            "p": difference.p if difference else None,
            "p_adjusted": self.p_adjusted,
            "band": trial.band,
            "detectable": self._detectable(),
            "promoted": promoted,
            "reason": reason,
        }

    def _detectable(self) -> float | None:
        trial = self.trial
        if self.p_adjusted is None or trial.difference is None or trial.band is None:
            return None
        return trial.difference.detectable(self.rule.alpha / self.tests, POWER, trial.band)


def _trial(
    parent: Champion, candidate: Candidate, noise: SeedNoise | None, band: NoiseBand, rule: Rule
) -> _Trial:
    if candidate.outcome != "completed" or candidate.ranks is None:
        return _Trial(candidate, None, f"not measured: {candidate.outcome}")
    seeds = common_seeds(candidate.ranks, parent.ranks)
    if not seeds:
        return _Trial(candidate, None, "not compared: no seed in common with the parent", seeds)
    difference = same_seed_difference(candidate.ranks, parent.ranks, noise)
    reach = band.of_difference(len(seeds), len(seeds))
    obstacle = None
    if len(seeds) < rule.seeds:
        obstacle = (
            f"{len(candidate.ranks)} seed(s) against {len(parent.ranks)} of the parent, "
            f"{len(seeds)} in common: {rule.seeds} are needed to tell a gain from the noise of "
            "training"
        )
    elif reach is None:
        obstacle = (
            "the noise band is unknown: the base was measured with one seed, and two are needed"
        )
    return _Trial(candidate, difference, obstacle, seeds, reach)


def _noise(noise: SeedNoise | None) -> dict[str, Any] | None:
    if noise is None:
        return None
    return {
        "deviation": math.sqrt(noise.variance),
        "shared": math.sqrt(noise.shared),
        "freedom": noise.freedom,
    }


def _interval(difference: Difference) -> str:
    low, high = difference.interval95
    return f"the 95 % interval [{low:+.4f}, {high:+.4f}]"

"""Turns of a loop with known truth: ranks of a champion and its candidates, from a small model.

A user's rank comes from a score: what the user is like, what a model makes of the user, how a
seed moves all users of a model together, and what a seed does to each user.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from eop.leaderboard.promotion import Candidate, Champion, decide
from eop.stats import NoiseBand, Ranks, contribution, noise_band

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

USERS = np.arange(300)


@dataclass(frozen=True)
class World:
    """Standard deviations of the parts of a score; ``shaky`` multiplies the last model's seeds."""

    model: float = 0.5
    shared: float = 0.0
    own: float = 0.5
    seeds: int = 2
    candidates: int = 4
    shaky: float = 1.0

    def turns(self, effects: Sequence[float]) -> Iterator[tuple[Champion, list[Candidate]]]:
        """A champion and its candidates, once for each effect on the first candidate's scores."""
        generator = np.random.default_rng(1)
        for effect in effects:
            ranks = self._ranks(generator, effect)
            champion, *rest = [
                {number: Ranks(USERS, own) for number, own in enumerate(model)} for model in ranks
            ]
            yield (
                Champion("champion", champion),
                [Candidate(f"c{i}", f"c{i}", "completed", own) for i, own in enumerate(rest)],
            )

    def _ranks(self, generator: np.random.Generator, effect: float) -> NDArray[np.int64]:
        models, users = self.candidates + 1, len(USERS)
        moves = generator.normal(0, self.shared, (models, self.seeds, 1))
        moves[-1] *= self.shaky
        effects = np.zeros((models, 1, 1))
        effects[1] = effect
        scores = (
            generator.normal(0, 1, users)
            + generator.normal(0, self.model, (models, 1, users))
            + generator.normal(0, self.own, (models, self.seeds, users))
            + moves
            + effects
        )
        return _ranks_of(scores)

    def effects_of(self, gains: Sequence[float]) -> list[float]:
        """The effects on the score that add so much to NDCG@10, from a large sample."""
        generator = np.random.default_rng(99)
        spread = np.sqrt(1 + self.model**2 + self.own**2 + self.shared**2)
        scores = generator.normal(0, spread, 100_000)
        grid = np.linspace(0, 4, 60)
        added = np.array([_mean_gain(scores + shift) for shift in grid]) - _mean_gain(scores)
        return list(np.interp(gains, added, grid))


def _mean_gain(scores: NDArray[np.float64]) -> float:
    return float(contribution(_ranks_of(scores)).mean())


def _ranks_of(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    return (8 * np.exp(-scores)).astype(np.int64) + 1


@dataclass
class Tally:
    """What came of many turns: the champions, and what was detectable of the first candidate."""

    promoted: list[str] = field(default_factory=list)
    naive: int = 0
    detectable: list[float] = field(default_factory=list)

    def share(self, name: str) -> float:
        return self.promoted.count(name) / len(self.promoted)


def band_of(champion: Champion) -> NoiseBand:
    return noise_band([float(contribution(r.ranks).mean()) for r in champion.ranks.values()])


def play(world: World, effects: Sequence[float]) -> Tally:
    """Decide a turn for each effect; ``naive`` counts those with a mean two errors above 0."""
    tally = Tally()
    for champion, candidates in world.turns(effects):
        decision = decide(champion, candidates, band_of(champion))
        tally.promoted.append(decision["champion"])
        tally.naive += any(_naive(champion, candidate) for candidate in candidates)
        tally.detectable.append(decision["candidates"][0]["detectable"])
    return tally


def _naive(champion: Champion, candidate: Candidate) -> bool:
    """Two standard errors over users and the pair's own seeds, each candidate for itself."""
    assert candidate.ranks is not None
    sides = [
        np.stack([contribution(ranks.ranks) for ranks in side.values()])
        for side in (candidate.ranks, champion.ranks)
    ]
    per_user = sides[0].mean(axis=0) - sides[1].mean(axis=0)
    means = [side.mean(axis=1) for side in sides]
    squares = sum(float(((side - side.mean()) ** 2).sum()) for side in means)
    freedom = sum(len(side) - 1 for side in sides)
    seeds = squares / freedom * sum(1 / len(side) for side in sides)
    error = np.sqrt(per_user.var(ddof=1) / len(per_user) + seeds)
    return bool(per_user.mean() > 2 * error)


WORLDS = {
    "users alone are the noise, 2 seeds, 4 candidates": World(),
    "seeds as much as users, 2 seeds, 4 candidates": World(shared=0.1),
    "seeds as much as users, 3 seeds, 4 candidates": World(shared=0.1, seeds=3),
    "seeds above all, 3 seeds, 4 candidates": World(shared=0.3, seeds=3),
    "seeds as much as users, 2 seeds, 1 candidate": World(shared=0.1, candidates=1),
    "the same, one of 4 three times as shaky": World(shared=0.1, shaky=3.0),
}


def main() -> None:
    """Print what the rule and two errors a candidate come to in each world."""
    print("world | no effect: promoted | two errors each | found at the detectable gain")
    for name, world in WORLDS.items():
        null = play(world, [0.0] * 1000)
        planted = play(world, world.effects_of(null.detectable))
        settled = play(world, world.effects_of(planted.detectable))
        shares = (1 - null.share("champion"), null.naive / 1000, settled.share("c0"))
        print(" | ".join([name, *(f"{share:.1%}" for share in shares)]))


if __name__ == "__main__":
    main()

"""What a run came to as a whole: base rates, power, and what many proposals do to a p-value."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from eop.leaderboard.standing import PROMOTED, standing
from eop.stats.multiplicity import benjamini_hochberg

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eop.leaderboard.entry import Entry


@dataclass(frozen=True)
class Comparison:
    """One tested candidate: ``p_turn`` is adjusted for its turn, ``q`` for all of the run."""

    entry: str
    delta: float
    p: float
    p_turn: float
    q: float
    promoted: bool


@dataclass(frozen=True)
class Summary:
    """A run's candidates: how they ended, and how far its promotions may be trusted.

    ``false_promotions`` is how many the rule allows for at most when nothing ever helps: the sum of
    the turns' levels. ``detectable`` is the median gain that a comparison finds with a power of
    0.8. ``test_reads`` counts the canonical test of all rows. What was not recorded is ``None``.
    """

    run: str
    dataset: str
    candidates: int
    standings: dict[str, int]
    turns: int
    promoted: int
    false_promotions: float | None
    detectable: float | None
    test_reads: int
    comparisons: list[Comparison]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def summaries(entries: Iterable[Entry]) -> list[Summary]:
    """One summary a run, by name."""
    runs: dict[str, list[Entry]] = {}
    for entry in entries:
        runs.setdefault(entry.run, []).append(entry)
    return [_summary(run, runs[run]) for run in sorted(runs)]


def _summary(run: str, entries: list[Entry]) -> Summary:
    candidates = [entry for entry in entries if entry.kind == "candidate"]
    compared = _comparisons(candidates)
    levels = {
        entry.iteration: entry.decision.alpha
        for entry in candidates
        if entry.decision and entry.decision.alpha is not None
    }
    seen = [
        entry.decision.detectable
        for entry in candidates
        if entry.decision and entry.decision.detectable is not None
    ]
    return Summary(
        run=run,
        dataset=entries[0].evidence["split"]["dataset"],
        candidates=len(candidates),
        standings=dict(sorted(Counter(map(standing, candidates)).items())),
        turns=len({entry.iteration for entry in candidates}),
        promoted=sum(standing(entry) == PROMOTED for entry in candidates),
        false_promotions=sum(levels.values()) if levels else None,
        detectable=median(seen) if seen else None,
        test_reads=sum(entry.test_reads for entry in entries),
        comparisons=compared,
    )


def _comparisons(candidates: list[Entry]) -> list[Comparison]:
    """Those that were put to the test, the least likely to be chance first."""
    tested = []
    for entry in candidates:
        made = entry.decision
        if made and made.p is not None and made.p_adjusted is not None and made.delta is not None:
            tested.append((entry.id, made.delta, made.p, made.p_adjusted, made.promoted))
    q_values = benjamini_hochberg([p for _, _, p, _, _ in tested])
    found = [
        Comparison(entry, delta, p, adjusted, q, promoted)
        for (entry, delta, p, adjusted, promoted), q in zip(tested, q_values, strict=True)
    ]
    return sorted(found, key=lambda one: (one.q, one.p, one.entry))

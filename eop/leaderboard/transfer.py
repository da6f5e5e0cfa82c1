"""What recipes gain on other data sets, beside what was published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.leaderboard.published import read_published
from eop.leaderboard.standing import standing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from eop.leaderboard.entry import Entry


@dataclass(frozen=True)
class Claim:
    """A published NDCG@10 before and after; ``None`` where the text gives words alone."""

    base: float | None
    ndcg: float | None
    words: str
    source: str

    @property
    def gain(self) -> float | None:
        """The relative gain; ``None`` when it was not published."""
        return None if self.base is None or self.ndcg is None else self.ndcg / self.base - 1


@dataclass(frozen=True)
class Gain:
    """A recipe on a data set: test NDCG@10 of the run's base and its own, and how they differ.

    ``interval``: of the paired difference, 95 %, over ``seeds``. ``test_reads``: of the recipe's
    row. What was not measured is ``None``.
    """

    dataset: str
    recipe: str
    entry: str
    standing: str
    base: float | None
    ndcg: float | None
    difference: float | None
    interval: tuple[float, float] | None
    seeds: tuple[int, ...]
    test_reads: int
    claim: Claim | None

    @property
    def relative(self) -> float | None:
        """The gain as a share of the base's NDCG@10; ``None`` when either is missing or 0."""
        return self.ndcg / self.base - 1 if self.base and self.ndcg is not None else None


def gains(entries: Iterable[Entry], protocol: str, claims: dict[str, Claim]) -> list[Gain]:
    """The candidates of a protocol's runs, by recipe and data set; the failed ones too."""
    known = list(entries)
    bases = {entry.run: entry for entry in known if entry.kind == "base"}
    found = [
        _gain(entry, bases.get(entry.run), claims)
        for entry in known
        if entry.kind == "candidate" and entry.evidence["plan"]["name"] == protocol
    ]
    return sorted(found, key=lambda gain: (gain.recipe, gain.dataset, gain.entry))


def not_replayed(claims: dict[str, Claim], found: Iterable[Gain]) -> dict[str, Claim]:
    """The claims on data sets that no recipe was measured on, by the beginning of their names."""
    measured = {gain.dataset for gain in found if gain.ndcg is not None}
    return {
        name: claim
        for name, claim in claims.items()
        if not any(dataset.startswith(name) for dataset in measured)
    }


def _gain(entry: Entry, base: Entry | None, claims: dict[str, Claim]) -> Gain:
    compared = entry.on_test if base and entry.parent == base.id else None
    dataset = entry.evidence["split"]["dataset"]
    return Gain(
        dataset=dataset,
        recipe=entry.proposal.id,
        entry=entry.id,
        standing=standing(entry),
        base=base.test.mean["ndcg@10"] if base and base.test else None,
        ndcg=entry.test.mean["ndcg@10"] if entry.test else None,
        difference=compared.delta if compared else None,
        interval=compared.interval if compared else None,
        seeds=compared.seeds if compared else (),
        test_reads=entry.test_reads,
        claim=next((claim for name, claim in claims.items() if dataset.startswith(name)), None),
    )


def read_claims(root: Path) -> dict[str, Claim]:
    """The published claims by the beginning of a data set's name; none without the file.

    Raises ``EopError`` (EOP666) when the file is no YAML or breaks its schema.
    """
    data = read_published(root, "claims", "EOP666")
    if data is None:
        return {}
    return {
        name: Claim(item["base"], item["ndcg@10"], item["words"], data["source"])
        for name, item in data["datasets"].items()
    }

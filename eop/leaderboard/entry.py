"""A leaderboard entry as plain data. ``None`` means not measured; a number was measured."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from eop.core.canonical import plain
from eop.core.schema import problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ENTRY_SCHEMA = "entry/1"
METRICS = ("ndcg@10", "hr@10", "mrr")


@dataclass(frozen=True)
class Proposal:
    """What was tried, in the proposer's words."""

    id: str
    title: str
    hypothesis: str


@dataclass(frozen=True)
class Scores:
    """Metrics of one target: the mean over seeds and each seed's own (by seed, as text).

    ``interval``: of the mean NDCG@10, 95 %, over users and seeds; ``None``: not recorded.
    """

    mean: dict[str, float]
    seeds: dict[str, dict[str, float]] = field(default_factory=dict)
    interval: tuple[float, float] | None = None

    @classmethod
    def over_seeds(
        cls,
        by_seed: Mapping[int, Mapping[str, float]],
        interval: tuple[float, float] | None = None,
    ) -> Scores:
        """Scores from each seed's metrics (at least one seed; keys as in ``METRICS``)."""
        if not by_seed:
            raise ValueError("scores need at least one seed")
        seeds = {str(seed): dict(by_seed[seed]) for seed in sorted(by_seed)}
        mean = {
            name: math.fsum(metrics[name] for metrics in seeds.values()) / len(seeds)
            for name in METRICS
        }
        return cls(mean, seeds, interval)


@dataclass(frozen=True)
class Decision:
    """What the promotion rule said. ``delta``: NDCG@10 against the parent on validation.

    ``seeds`` are those that both sides have, and were compared. ``p_adjusted`` is for all that
    were tested in the turn, held together to ``alpha``; ``band`` is what null controls differ by,
    ``detectable`` the gain that was found with a power of 0.8 if there was one. ``None``: not
    recorded, or not tested.
    """

    promoted: bool
    delta: float | None
    interval: tuple[float, float] | None
    reason: str
    seeds: tuple[int, ...] | None = None
    p: float | None = None
    p_adjusted: float | None = None
    band: float | None = None
    detectable: float | None = None
    alpha: float | None = None


_LATER = {
    "validation": ("interval",),
    "test": ("interval",),
    "decision": ("seeds", "p", "p_adjusted", "band", "detectable", "alpha"),
}


@dataclass(frozen=True)
class Comparison:
    """NDCG@10 against the parent over the same users and seeds, with its 95 % interval."""

    delta: float
    interval: tuple[float, float]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Cost:
    """What the entry took: what its agents did, seconds of all its nodes, seconds of training.

    ``tokens`` are what models read and wrote, ``usd`` dollars, as products report them.
    """

    actions: int | None
    wall_s: float | None
    train_s: float | None
    tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True)
class Entry:
    """One row of the leaderboard with what it rests on; ``entry.yaml`` is its only form on disk.

    ``kind``: popularity, base or candidate. ``parent``: id of the entry it is compared with.
    ``tolerance``: largest absolute difference of a metric that a reproduction accepts.
    ``on_test`` compares with the parent on the test; nothing is decided by it.
    ``not_reproducible``: why, or ``None`` when it is. ``evidence``: see the schema ``entry/1``.
    """

    id: str
    kind: str
    run: str
    iteration: int | None
    branch: str | None
    proposal: Proposal
    parent: str | None
    outcome: str
    reason: str
    validation: Scores | None
    test: Scores | None
    test_reads: int
    decision: Decision | None
    cost: Cost
    tolerance: float
    not_reproducible: str | None
    evidence: dict[str, Any]
    on_test: Comparison | None = None

    @property
    def refitted(self) -> bool:
        """Whether the test was judged with checkpoints that validation was not judged with."""
        return any(
            "validation" not in file.get("targets", ("validation",))
            for file in self.evidence["checkpoints"]
        )

    @property
    def reproducible(self) -> bool:
        """Whether a reproduction is possible."""
        return self.not_reproducible is None

    def to_json(self) -> dict[str, Any]:
        """Plain data in the order of the file; ``from_json`` is its inverse."""
        data: dict[str, Any] = plain({"schema": ENTRY_SCHEMA, **asdict(self)})
        # Entries are history: those of earlier versions hold fewer facts, and keep their bytes.
        for part, later in _LATER.items():
            for name in later if data[part] else ():
                if data[part][name] is None:
                    del data[part][name]
        tail = {name: data.pop(name) for name in ("not_reproducible", "evidence")}
        on_test = data.pop("on_test")
        compared = {"on_test": on_test} if on_test else {}
        return {**data, **compared, "reproducible": self.reproducible, **tail}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """Rebuild an entry from checked data (see ``entry_problems``)."""
        values = {key: data[key] for key in data if key not in ("schema", "reproducible")}
        values["proposal"] = Proposal(**data["proposal"])
        values["cost"] = Cost(**data["cost"])
        for name in ("validation", "test"):
            values[name] = Scores(**_tuples(data[name])) if data[name] else None
        for name, kind in (("decision", Decision), ("on_test", Comparison)):
            values[name] = kind(**_tuples(data[name])) if data.get(name) else None
        return cls(**values)


def _tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(item) if isinstance(item, list) else item for key, item in data.items()}


def entry_problems(data: Any, schema: dict[str, Any]) -> list[str]:
    """Everything wrong with an entry's data, one line each: NaN and infinity first, by key."""
    return [*_not_finite(data, ""), *problems(data, schema)]


def _not_finite(value: Any, place: str) -> Iterator[str]:
    # JSON Schema lets NaN pass every bound.
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{place}: {value} is not a number that can be recorded; use null when not measured"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _not_finite(item, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _not_finite(item, f"{place}.{index}")

"""What a change did to the number that decides, as a sign that rules can compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from eop.leaderboard import Entry

BETTER = "better"
WORSE = "worse"
WITHIN_NOISE = "within_noise"
NOT_MEASURED = "not_measured"
FAILS = "fails"
SIGNS = (BETTER, WORSE, WITHIN_NOISE, NOT_MEASURED)
METRIC = "ndcg@10"
_MIN_SEEDS = 2
_OPPOSITE = {BETTER: WORSE, WORSE: BETTER}


@dataclass(frozen=True)
class Effect:
    """The difference of ``metric`` against the parent on validation, over the same users and seeds.

    ``interval`` is the 95 % interval. ``delta`` is ``None`` where nothing was compared; the sign
    is ``not_measured`` also when fewer than two seeds were: the noise of training is not in it.
    """

    metric: str
    delta: float | None
    interval: tuple[float, float] | None
    seeds: tuple[int, ...]
    sign: str

    @classmethod
    def of(cls, entry: Entry) -> Effect:
        """The effect that an entry records."""
        decision = entry.decision
        if decision is None or decision.delta is None:
            return cls(METRIC, None, None, (), NOT_MEASURED)
        own = tuple(sorted(map(int, entry.validation.seeds))) if entry.validation else ()
        seeds = own if decision.seeds is None else decision.seeds
        return cls(METRIC, decision.delta, decision.interval, seeds, sign(decision.interval, seeds))

    def to_json(self) -> dict[str, Any]:
        """Plain data, in the order of a note."""
        return {
            "metric": self.metric,
            "delta": self.delta,
            "interval": list(self.interval) if self.interval else None,
            "seeds": list(self.seeds),
            "sign": self.sign,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Effect:
        """The inverse of ``to_json``."""
        low_high = data["interval"]
        interval = (low_high[0], low_high[1]) if low_high else None
        return cls(data["metric"], data["delta"], interval, tuple(data["seeds"]), data["sign"])


def sign(interval: tuple[float, float] | None, seeds: tuple[int, ...]) -> str:
    """The sign that an interval of a paired difference allows, over these seeds."""
    if interval is None or len(seeds) < _MIN_SEEDS:
        return NOT_MEASURED
    low, high = interval
    if low > 0:
        return BETTER
    return WORSE if high < 0 else WITHIN_NOISE


def opposite(one: str, other: str) -> bool:
    """Whether two signs cannot both be true of one thing; no effect seen contradicts neither."""
    return _OPPOSITE.get(one) == other

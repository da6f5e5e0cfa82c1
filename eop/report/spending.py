"""What a run has spent, unit by unit; what nobody could count is unknown, and never 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.protocol.model import UNITS
from eop.runtime.node import Instance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from eop.protocol.model import Plan
    from eop.runtime.events import Event
    from eop.runtime.state import State

# What is spent, in words, by the unit of a `Spend`.
SPENT = {
    "actions": "agent actions",
    "tokens": "tokens",
    "usd": "US dollars",
    "wall_s": "seconds of work",
}
# Counted by the state for every run, limited or not.
_ALWAYS = ("actions", "wall")


@dataclass(frozen=True)
class Spend:
    """A unit of the run's budget: spent, set aside for open nodes, and the limit if there is one.

    ``unknown`` counts attempts that nobody could meter: then the sum is a lower bound, and
    ``None`` where no attempt could be metered.
    """

    unit: str
    spent: float | None
    reserved: float
    limit: float | None
    unknown: int


def spending(plan: Plan, state: State, events: Sequence[Event]) -> tuple[Spend, ...]:
    """Actions, work and whatever else the run limits or its agents have reported.

    Of a unit that is not limited, ``events`` tell; where they are left out it is not listed.
    """
    found = []
    for unit, field in UNITS.items():
        # Exact until here; people are shown dollars.
        scale = 1_000_000 if unit == "usd" else 1
        limit = getattr(plan.budget, field)
        if limit is None and unit not in _ALWAYS:
            spent, unknown = _reported(plan, events, field)
            if not spent and not unknown:
                continue
        else:
            spent, unknown = getattr(state.spent, field), state.unmetered
        found.append(
            Spend(
                field if unit == "wall" else unit,
                None if spent is None else spent / scale,
                getattr(state.reserved, field) / scale,
                None if limit is None else limit / scale,
                unknown,
            )
        )
    return tuple(found)


def _reported(plan: Plan, events: Sequence[Event], field: str) -> tuple[int | None, int]:
    """The sum of what agents' attempts have reported, and how many have not."""
    counts = list(_counts(plan, events, field))
    known = [count for count in counts if count is not None]
    return (sum(known) if known or not counts else None), len(counts) - len(known)


def _counts(plan: Plan, events: Sequence[Event], field: str) -> Iterator[int | None]:
    for event in events:
        if event.type not in ("node_left", "node_abandoned"):
            continue
        if field in plan.phase(Instance.parse(event.data["node"]).step).spends:
            yield event.data.get("usage", {}).get(field)

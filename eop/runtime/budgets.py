"""The run's budget: reserve before an attempt, settle after it, never hand out what is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.protocol.model import OF_AGENTS, UNITS, shown
from eop.runtime.state import Amount

if TYPE_CHECKING:
    from eop.protocol.model import Phase, Plan
    from eop.runtime.node import Usage
    from eop.runtime.state import State

_FIELDS = tuple(UNITS.values())


def spent_by(phase: Phase) -> tuple[str, ...]:
    """The fields of a budget that work of ``phase`` uses up: a ``function`` calls no agent."""
    return tuple(one for one in _FIELDS if not (phase.function and one in OF_AGENTS))


def reservation(phase: Phase) -> Amount:
    """What an attempt of ``phase`` sets aside: its declared budget, 0 where it declares none."""
    return Amount(**{one: getattr(phase.budget, one) or 0 for one in spent_by(phase)})


def shortfall(plan: Plan, state: State, phase: Phase) -> str | None:
    """Why the run's budget cannot carry one more attempt of ``phase``; ``None`` when it can.

    What open nodes have reserved counts as spent until they leave. A phase that declares no
    amount of its own is let in only while something is left. A ``function`` calls no agent, so
    spent actions do not stop it.
    """
    need = reservation(phase)
    used = state.spent + state.reserved
    for one in spent_by(phase):
        limit, taken, wanted = getattr(plan.budget, one), getattr(used, one), getattr(need, one)
        if limit is not None and (taken + wanted > limit or taken >= limit):
            left = shown(one, max(0, limit - taken))
            return (
                f"the run's budget of {shown(one, limit)} {_word(one)} has {left} left, "
                f"{phase.id} needs {shown(one, wanted) if wanted else 'some'}"
            )
    return None


def _word(field: str) -> str:
    """The unit's name, where the amount does not say it."""
    return next(unit for unit, one in UNITS.items() if one == field)


def settle(reserve: Amount, usage: Usage | None) -> Amount:
    """What an attempt cost: its usage, and its reservation wherever the usage is unknown."""
    if usage is None:
        return reserve
    known = {one: getattr(usage, one) for one in _FIELDS}
    return Amount(**{k: getattr(reserve, k) if v is None else v for k, v in known.items()})


def unmetered(plan: Plan, phase: Phase, usage: Usage | None) -> bool:
    """Whether nothing says what an attempt cost in a unit that the run limits.

    That is: its usage is unknown, and there was no reservation for it.
    """
    return any(
        getattr(phase.budget, one) is None and (usage is None or getattr(usage, one) is None)
        for one in spent_by(phase)
        if one in ("actions", "wall_s") or getattr(plan.budget, one) is not None
    )


def overrun(phase: Phase, usage: Usage) -> str | None:
    """Why an attempt used more than its phase allows; ``None`` when it did not.

    Time is not asked for: who is stopped at the limit has used a little more.
    """
    for one in OF_AGENTS:
        limit, used = getattr(phase.budget, one), getattr(usage, one)
        if limit is not None and used is not None and used > limit:
            return f"{shown(one, used)} {_word(one)} used, {shown(one, limit)} allowed"
    return None


def overdrawn(plan: Plan, state: State) -> list[str]:
    """Each unit of which the run has spent more than its budget, as one readable line."""
    return [
        f"spent {shown(one, spent)} {_word(one)}, the run's budget is {shown(one, limit)}"
        for one in _FIELDS
        if (limit := getattr(plan.budget, one)) is not None
        and (spent := getattr(state.spent, one)) > limit
    ]

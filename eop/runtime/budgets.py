"""The run's budget: reserve before an attempt, settle after it, never hand out what is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.protocol.model import OF_AGENTS, UNITS, Amount, shown

if TYPE_CHECKING:
    from eop.protocol.model import Phase, Plan
    from eop.runtime.node import Usage
    from eop.runtime.state import State

# Counted for every phase, limited or not.
_ALWAYS = ("actions", "wall_s")
# How long an attempt may take to end once it is stopped: signals, and files to be sorted.
_STOPPING_S = 60.0


def shortfall(plan: Plan, state: State, phase: Phase) -> str | None:
    """Why the run's budget cannot carry one more attempt of ``phase``; ``None`` when it can.

    What open nodes have reserved counts as spent until they leave. A phase that declares no
    amount of its own is let in only while something is left. A ``function`` calls no agent, so
    spent actions do not stop it.
    """
    for one, limit in plan.limits:
        if one not in phase.spends:
            continue
        taken = getattr(state.spent, one) + getattr(state.reserved, one)
        wanted = getattr(phase.reservation, one)
        if taken + wanted > limit or taken >= limit:
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
    return Amount(
        reserve.actions if usage.actions is None else usage.actions,
        usage.wall_s,
        reserve.tokens if usage.tokens is None else usage.tokens,
        reserve.micro_usd if usage.micro_usd is None else usage.micro_usd,
    )


def unmetered(plan: Plan, phase: Phase, usage: Usage | None) -> bool:
    """Whether nothing says what an attempt cost in a unit that the run limits.

    That is: its usage is unknown, and there was no reservation for it.
    """
    for one in phase.spends:
        asked = one in _ALWAYS or getattr(plan.budget, one) is not None
        known = usage is not None and getattr(usage, one) is not None
        if asked and not known and getattr(phase.budget, one) is None:
            return True
    return False


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
    """Each unit of which the run has spent more than its budget, as one readable line.

    The time that stopped nodes took to end is no such spending: they were let in within the budget.
    """
    return [
        f"spent {shown(one, spent)} {_word(one)}, the run's budget is {shown(one, limit)}"
        for one, limit in plan.limits
        if (spent := getattr(state.spent, one))
        > limit + (_stopping(state) if one == "wall_s" else 0)
    ]


def _stopping(state: State) -> float:
    """Seconds that the attempts of nodes which ran over their time may have taken to end."""
    late = (
        node.attempt
        for node in state.nodes.values()
        if node.usage is not None and 0 < node.reserve.wall_s < node.usage.wall_s
    )
    return _STOPPING_S * sum(late)

"""The run's budget: reserve before an attempt, settle after it, never hand out what is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.runtime.state import Amount

if TYPE_CHECKING:
    from eop.protocol.model import Phase, Plan
    from eop.runtime.node import Usage
    from eop.runtime.state import State


def reservation(phase: Phase) -> Amount:
    """What an attempt of ``phase`` sets aside: its declared budget, 0 where it declares none.

    A ``function`` calls no agent: it sets no actions aside.
    """
    actions = 0 if phase.function else phase.budget.actions or 0
    return Amount(actions, phase.budget.wall_s or 0)


def shortfall(plan: Plan, state: State, phase: Phase) -> str | None:
    """Why the run's budget cannot carry one more attempt of ``phase``; ``None`` when it can.

    What open nodes have reserved counts as spent until they leave. A phase that declares no
    amount of its own is let in only while something is left. A ``function`` calls no agent, so
    spent actions do not stop it.
    """
    need = reservation(phase)
    used = state.spent + state.reserved
    checks = [("wall_s", plan.budget.wall_s, used.wall_s, need.wall_s)]
    if phase.function is None:
        checks.append(("actions", plan.budget.actions, used.actions, need.actions))
    for unit, limit, taken, wanted in checks:
        if limit is None:
            continue
        if taken + wanted > limit or taken >= limit:
            return (
                f"the run's budget of {limit} {unit} has {max(0, limit - taken):g} left, "
                f"{phase.id} needs {f'{wanted:g}' if wanted else 'some'}"
            )
    return None


def settle(reserve: Amount, usage: Usage | None) -> Amount:
    """What an attempt cost: its usage, and its reservation wherever the usage is unknown."""
    if usage is None:
        return reserve
    actions = reserve.actions if usage.actions is None else usage.actions
    return Amount(actions, usage.wall_s)


def unmetered(phase: Phase, usage: Usage | None) -> bool:
    """Whether nothing says what an attempt cost: usage unknown and no reservation for it."""
    actions = phase.function is None and phase.budget.actions is None
    if usage is None:
        return actions or phase.budget.wall_s is None
    return actions and usage.actions is None


def overrun(phase: Phase, usage: Usage) -> str | None:
    """Why an attempt used more actions than its phase allows; ``None`` when it did not."""
    limit = phase.budget.actions
    if limit is None or usage.actions is None or usage.actions <= limit:
        return None
    return f"{usage.actions} actions used, {limit} allowed"


def overdrawn(plan: Plan, state: State) -> list[str]:
    """Each unit of which the run has spent more than its budget, as one readable line."""
    pairs = [
        ("actions", plan.budget.actions, state.spent.actions),
        ("wall_s", plan.budget.wall_s, state.spent.wall_s),
    ]
    return [
        f"spent {spent:g} {unit}, the run's budget is {limit}"
        for unit, limit, spent in pairs
        if limit is not None and spent > limit
    ]

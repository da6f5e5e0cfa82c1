"""Fan-ins: which branches have completed, and which are cut off because a join has enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.protocol.model import ANY

if TYPE_CHECKING:
    from eop.protocol.model import Phase, Plan
    from eop.runtime.node import Instance
    from eop.runtime.state import State

CUT_OFF = "cut off, the join has enough"


def join_failure(plan: Plan, state: State, phase: Phase, iteration: int) -> str | None:
    """Why a join whose branches have all left cannot fire; ``None`` when it may."""
    assert phase.join is not None
    home = state.home(plan, phase.join.of, iteration)
    opened = len(state.paths(home, plan.phase(phase.join.of).branch))
    good = len(completed_branches(plan, state, phase, iteration))
    if good >= phase.join.at_least:
        return None
    return f"{good} of {opened} branches completed, {phase.join.at_least} needed"


def completed_branches(plan: Plan, state: State, phase: Phase, iteration: int) -> list[str]:
    """The branches that have completed, by the reckoning of the join ``phase``.

    Each phase of a branch before the join has left, and those that only good branches run have
    completed: a phase that runs in failed ones too says nothing of it.
    """
    assert phase.join is not None
    home = state.home(plan, phase.join.of, iteration)
    path = [plan.phase(step) for step in plan.branch_path(phase.id)]
    return [
        branch.name
        for branch in state.paths(home, plan.phase(phase.join.of).branch)
        if branch and all(_good(state, one, home, branch.name) for one in path)
    ]


def _good(state: State, phase: Phase, iteration: int, branch: str) -> bool:
    node = state.node(state.current(phase.id, iteration, branch))
    return node is not None and (node.completed or (node.final and "failed" in phase.on_branch))


def cut_off(plan: Plan, state: State, instance: Instance) -> bool:
    """Whether a join has enough branches without that of ``instance``: nothing of it may start."""
    item = plan.phase(instance.step).branch
    if item is None:
        return False
    for phase in plan.phases:
        join = phase.join
        if join and join.wait == ANY and plan.phase(join.of).branch == item:
            done = completed_branches(plan, state, phase, instance.iteration)
            if len(done) >= join.at_least and instance.branch not in done:
                return True
    return False

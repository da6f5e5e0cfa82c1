"""Fan-ins: which branches have completed, and which are cut off because a join has enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eop.protocol.model import Phase, Plan
    from eop.runtime.node import Branch, Instance
    from eop.runtime.state import State

CUT_OFF = "cut off, the join has enough"


@dataclass(frozen=True)
class JoinFailure:
    """Why a join cannot fire; ``excused`` when the branches that a guard ended were enough."""

    reason: str
    excused: bool


def join_failure(plan: Plan, state: State, phase: Phase, iteration: int) -> JoinFailure | None:
    """Why a join whose branches have all left cannot fire; ``None`` when it may."""
    assert phase.join is not None
    home, least = state.home(plan, phase.join.of, iteration), phase.join.at_least
    opened = state.paths(home, plan.phase(phase.join.of).branch)
    good = len(completed_branches(plan, state, phase, iteration))
    if good >= least:
        return None
    path = [plan.phase(step) for step in plan.branch_path(phase.id)]
    failed = sum(any(_failed(state, one, home, branch) for one in path) for branch in opened)
    reason = f"{good} of {len(opened)} branches completed, {least} needed"
    return JoinFailure(reason, len(opened) - failed >= least)


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
    return node is not None and (node.completed or (node.final and _says_nothing(phase)))


def _failed(state: State, phase: Phase, iteration: int, branch: Branch | None) -> bool:
    """Whether a branch has failed in ``phase``, and was not merely ended by a guard before it."""
    node = state.node(state.current(phase.id, iteration, branch.name if branch else None))
    well = node is not None and (node.completed or node.excused)
    return not well and not _says_nothing(phase)


def _says_nothing(phase: Phase) -> bool:
    """Whether how ``phase`` ends says nothing of its branch."""
    return phase.optional or "failed" in phase.on_branch


def cut_off(plan: Plan, state: State, instance: Instance) -> bool:
    """Whether a join has enough branches without that of ``instance``: nothing of it may start."""
    item = plan.phase(instance.step).branch
    if item is None:
        return False
    for phase in plan.cutting(item):
        assert phase.join is not None
        done = completed_branches(plan, state, phase, instance.iteration)
        if len(done) >= phase.join.at_least and instance.branch not in done:
            return True
    return False

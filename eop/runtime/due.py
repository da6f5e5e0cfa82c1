"""What follows from the state alone: the next event that needs neither a person nor a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.protocol.model import Gate, Phase, Plan
from eop.runtime.decisions import goes_back, turns_again
from eop.runtime.frontier import (
    blocked,
    everything_left,
    is_approved,
    members,
    waits_for,
)
from eop.runtime.gates import REJECTED, gate_digest
from eop.runtime.node import Instance, Outcome
from eop.runtime.state import CANCELLED

if TYPE_CHECKING:
    from eop.runtime.state import NodeState, State


def due(plan: Plan, state: State) -> tuple[str, dict[str, Any]] | None:
    """Type and data of the next automatic event, or ``None`` when the run stands still.

    ``branches_opened`` is not among them: it needs the content of an artifact.
    """
    if state.ended:
        return None
    reason = ending(plan, state)
    if reason:
        return "run_ended", {"reason": reason}
    returning = sender(plan, state)
    if returning is not None:
        return "sent_back", {"node": returning.key}
    if turn(plan, state):
        return "loop_continued", {"iteration": state.iteration + 1}
    for gate in gates_of(plan, state):
        if state.gate(gate) is not None:
            continue
        if not unready(plan, state, gate):
            return "gate_requested", {"gate": gate.key, "digest": asked(plan, state, gate)}
        pointless = moot(plan, state, gate)
        if pointless:
            return "gate_skipped", {"gate": gate.key, "reason": pointless}
    return None


def ending(plan: Plan, state: State) -> str | None:
    """Why the run is over, one of ``END_REASONS``; ``None`` while it is not."""
    if state.halt and state.halt.status == CANCELLED:
        return CANCELLED
    if any(
        known is not None and known.status == REJECTED
        for known in (state.gate(gate) for gate in gates_of(plan, state))
    ):
        return "rejected"
    lost = {
        node.status
        for instance in _trunk(plan, state)
        if (node := state.node(instance)) is not None and _is_lost(plan.phase(instance.step), node)
    }
    if lost:
        exhausted = lost <= {Outcome.BUDGET_EXHAUSTED, Outcome.SKIPPED}
        return "budget_exhausted" if exhausted and Outcome.BUDGET_EXHAUSTED in lost else "failed"
    if everything_left(plan, state) and not turn(plan, state):
        return "completed"
    return None


def _is_lost(phase: Phase, node: NodeState) -> bool:
    """Whether a phase has ended in a way that the run cannot go on from."""
    return node.final and not (node.completed or node.excused or phase.optional)


def sender(plan: Plan, state: State) -> Instance | None:
    """The phase whose goto is to be taken now."""
    return next((node for node in _trunk(plan, state) if goes_back(plan, state, node)), None)


def _trunk(plan: Plan, state: State) -> list[Instance]:
    """This iteration's phases outside branches: the run cannot go on without one of them."""
    names = members(plan, state.iteration)
    return [
        state.current(phase.id, state.iteration)
        for phase in plan.phases
        if phase.id in names and phase.branch is None
    ]


def turn(plan: Plan, state: State) -> bool:
    """Whether the loop goes on now: this iteration is over, turns are left and it still should."""
    if plan.loop is None or state.iteration >= plan.loop.max:
        return False
    return everything_left(plan, state) and turns_again(plan, state)


def gates_of(plan: Plan, state: State) -> list[Instance]:
    """This iteration's gates, in the newest revision, in document order."""
    names = members(plan, state.iteration)
    return [state.current(g.id, state.iteration) for g in plan.gates if g.id in names]


def asked(plan: Plan, state: State, gate: Instance) -> str:
    """The digest that a decision on ``gate`` must bear in this state."""
    return gate_digest(state.run, plan.digest, gate, state.shown(plan, gate))


def unready(plan: Plan, state: State, gate: Instance) -> str | None:
    """Why ``gate`` cannot be asked yet: something before it is not completed, or not there."""
    waiting = waits_for(plan, state, gate)
    if waiting:
        return waiting
    verdict = blocked(plan, state, gate)
    if verdict is not None:
        return verdict.reason
    return _unshown(plan, state, gate)


def moot(plan: Plan, state: State, gate: Instance) -> str | None:
    """Why there will be nothing to ask at ``gate``, guards being what they are."""
    if waits_for(plan, state, gate):
        return None
    verdict = blocked(plan, state, gate)
    if verdict is not None:
        return verdict.reason if verdict.excused else None
    return _unshown(plan, state, gate)


def _unshown(plan: Plan, state: State, gate: Instance) -> str | None:
    for name in plan.gate(gate.step).shows:
        inside_branch = plan.producer(name).branch is not None
        if not inside_branch and state.artifact(plan, name, gate.iteration) is None:
            return f"artifact '{name}' is not committed"
    return None


def opens(plan: Plan, state: State) -> Phase | None:
    """The first fan-out that may open its branches now: its list is there, all before it done."""
    if state.ended:
        return None
    for phase in plan.heads:
        if phase.fan_out is None or phase.id not in members(plan, state.iteration):
            continue
        if (state.iteration, phase.fan_out.item) in state.branches:
            continue
        if state.artifact(plan, phase.fan_out.artifact, state.iteration) is None:
            continue
        if all(_passed(plan, state, step) for step in plan.requirements(phase.id)):
            return phase
    return None


def _passed(plan: Plan, state: State, step: str) -> bool:
    needed = state.current(step, state.home(plan, step, state.iteration))
    if isinstance(plan.steps[step], Gate):
        return is_approved(state, needed)
    node = state.node(needed)
    ready = node is not None and (node.completed or (node.final and plan.phase(step).optional))
    return ready and not goes_back(plan, state, needed)

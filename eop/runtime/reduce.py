"""The one function by which a run moves. What is not declared is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from eop.core.errors import EopError, ExitCode
from eop.protocol.expressions import is_of
from eop.protocol.model import Amount, Gate, Phase, Plan
from eop.runtime import budgets, facts
from eop.runtime.decisions import goes_back
from eop.runtime.due import asked, ending, moot, opens, sender, turn, unready
from eop.runtime.events import GENESIS, Event
from eop.runtime.frontier import enabled
from eop.runtime.gates import APPROVED, REJECTED, SKIPPED
from eop.runtime.node import Artifact, Instance, Outcome, Usage
from eop.runtime.ordered import Ordered
from eop.runtime.state import (
    ABANDONED,
    CANCELLED,
    OPEN,
    PAUSED,
    GateState,
    Halt,
    NodeState,
    State,
    evolve,
)

# Outcomes after which another attempt may do better; the others would only repeat themselves.
RETRIED = frozenset({Outcome.FAILED, Outcome.TIMED_OUT})

_Data = Mapping[str, Any]
# The fields of the state that an event changes, with their new values.
_Changes = dict[str, Any]


class Refused(EopError):  # noqa: N818 - it is an answer of the state machine, not a fault of it
    """An event that the run's state does not allow; nothing has changed."""

    def __init__(self, reason: str) -> None:
        super().__init__("EOP730", f"refused: {reason}", exit_code=ExitCode.STATE)
        self.reason = reason


def reduce(plan: Plan, state: State | None, event: Event) -> State:
    """The state after ``event``. Pure and total: every other event raises ``Refused``."""
    if event.problems:
        raise Refused(f"event {event.seq} ({event.type}): {'; '.join(event.problems)}")
    if state is None:
        return _start(plan, event)
    _check_chain(state, event)
    if event.type == "run_started":
        raise Refused("the run has started already")
    if state.ended and event.type not in ("node_left", "node_abandoned"):
        raise Refused(f"the run has ended: {state.ended}")
    changes = _STEPS[event.type](plan, state, event.data)
    changes["seq"] = event.seq
    changes["head"] = event.digest
    return evolve(state, changes)


def _start(plan: Plan, event: Event) -> State:
    if event.type != "run_started" or event.seq != 1 or event.prev != GENESIS:
        raise Refused("a trace begins with run_started as event 1")
    if event.data["plan"] != plan.digest:
        raise Refused(f"the run was started with plan {event.data['plan'][:16]}, not this one")
    data = event.data
    variables = data["variables"]
    wrong = [
        name
        for name in {*plan.variables, *variables}
        if name not in plan.variables
        or name not in variables
        or not is_of(variables[name], plan.variables[name]["type"])
    ]
    if wrong:
        raise Refused(f"not the variables of the plan, or not of its types: {', '.join(wrong)}")
    heads = (data["run"], data["plan"], data["config"], data["snapshot"])
    return State(
        *heads,
        event.seq,
        event.digest,
        variables=dict(variables),
        signers=data.get("signers"),
        experiment=data.get("experiment"),
    )


def _check_chain(state: State, event: Event) -> None:
    if event.seq != state.seq + 1:
        raise Refused(f"event {event.seq} cannot follow event {state.seq}")
    if event.prev != state.head:
        raise Refused(f"event {event.seq} does not name event {state.seq} as the one before")


def _parse(key: str) -> Instance:
    try:
        instance = Instance.parse(key)
    except ValueError as error:
        raise Refused(str(error)) from None
    if instance.key != key:
        raise Refused(f"the node {key} is written {instance.key}")
    return instance


def _entered(plan: Plan, state: State, data: _Data) -> _Changes:
    instance = _parse(data["node"])
    verdict = enabled(plan, state, instance)
    if verdict.kind != "run":
        raise Refused(f"{instance.key} may not be entered: {verdict.reason or verdict.kind}")
    before = state.node(instance) or NodeState(OPEN, 0)
    if data["attempt"] != before.attempt + 1:
        raise Refused(f"{instance.key} is due for attempt {before.attempt + 1}")
    reserve = plan.phase(instance.step).reservation
    if Amount(**data["reserve"]) != reserve:
        raise Refused(f"{instance.key} must reserve {reserve}")
    node = NodeState(OPEN, data["attempt"], failures=before.failures, reserve=reserve)
    nodes = state.nodes.set(instance.key, node)
    return {"nodes": nodes, "reserved": state.reserved + reserve}


def _open_node(plan: Plan, state: State, data: _Data) -> tuple[Phase, NodeState]:
    node = state.nodes.get(data["node"])
    if node is None or node.status != OPEN or node.attempt != data["attempt"]:
        raise Refused(f"attempt {data['attempt']} of {data['node']} is not open")
    return plan.phase(_parse(data["node"]).step), node


def _settled(
    plan: Plan, state: State, phase: Phase, node: NodeState, usage: Usage | None
) -> _Changes:
    return {
        "reserved": state.reserved - node.reserve,
        "spent": state.spent + budgets.settle(node.reserve, usage),
        "unmetered": state.unmetered + budgets.unmetered(plan, phase, usage),
    }


def _left(plan: Plan, state: State, data: _Data) -> _Changes:
    phase, node = _open_node(plan, state, data)
    outcome, usage = Outcome(data["outcome"]), Usage(**data["usage"])
    artifacts = tuple(Artifact(**artifact) for artifact in data["artifacts"])
    if outcome is Outcome.COMPLETED:
        _check_completed(phase, data["node"], artifacts, usage)
        wrong = facts.mismatch(plan, phase, data["facts"])
        if wrong:
            raise Refused(f"{data['node']} cannot be completed: {wrong}")
    elif data["facts"]:
        raise Refused(f"{data['node']} did not complete: nothing is known of its artifacts")
    failures = node.failures + (outcome is not Outcome.COMPLETED)
    after = NodeState(
        outcome,
        node.attempt,
        final=outcome not in retried(phase) or failures >= phase.budget.attempts,
        failures=failures,
        artifacts=artifacts,
        usage=usage,
        reserve=node.reserve,
        reason=data["reason"],
        facts=dict(data["facts"]),
    )
    nodes = state.nodes.set(data["node"], after)
    return {"nodes": nodes, **_settled(plan, state, phase, node, usage)}


def retried(phase: Phase) -> frozenset[Outcome]:
    """Outcomes after which a node of ``phase`` may be entered again while attempts are left.

    Agents are tried again inside their pattern, which knows what each try has spent; so what an
    agent phase leaves is final.
    """
    return RETRIED if phase.function else frozenset()


def _check_completed(phase: Phase, key: str, artifacts: tuple[Artifact, ...], usage: Usage) -> None:
    names = [artifact.name for artifact in artifacts]
    missing = [output.name for output in phase.outputs if output.name not in names]
    if missing or len(set(names)) != len(names):
        raise Refused(f"{key} cannot be completed: outputs missing or twice: {missing or names}")
    over = budgets.overrun(phase, usage)
    if over:
        raise Refused(f"{key} cannot be completed: {over}")


def _abandoned(plan: Plan, state: State, data: _Data) -> _Changes:
    phase, node = _open_node(plan, state, data)
    after = node._replace(status=ABANDONED, reason=data["reason"], usage=None)
    nodes = state.nodes.set(data["node"], after)
    return {"nodes": nodes, **_settled(plan, state, phase, node, None)}


def _skipped(plan: Plan, state: State, data: _Data) -> _Changes:
    instance = _parse(data["node"])
    verdict = enabled(plan, state, instance)
    outcomes = {"skip": Outcome.SKIPPED, "budget": Outcome.BUDGET_EXHAUSTED}
    if verdict.kind not in outcomes:
        raise Refused(f"{instance.key} may not be skipped: {verdict.reason or verdict.kind}")
    before = state.node(instance) or NodeState(OPEN, 0)
    node = before._replace(
        status=outcomes[verdict.kind],
        final=True,
        reason=data["reason"],
        excused=verdict.excused,
        usage=before.usage or Usage(),
    )
    return {"nodes": state.nodes.set(instance.key, node)}


def _branches(plan: Plan, state: State, data: _Data) -> _Changes:
    phase = opens(plan, state)
    if phase is None or phase.fan_out is None or data["iteration"] != state.iteration:
        raise Refused("no fan-out may open its branches now")
    item = phase.fan_out.item
    if data["item"] != item:
        raise Refused(f"the next branches to open are those of '{item}', not of '{data['item']}'")
    artifact = state.artifact(plan, phase.fan_out.artifact, state.iteration)
    if artifact is None or artifact.sha256 != data["artifact"]:
        raise Refused(f"branches must come from the committed '{phase.fan_out.artifact}'")
    names = list(data["branches"])
    if len(names) > phase.fan_out.max:
        raise Refused(f"{len(names)} branches, at most {phase.fan_out.max} are allowed")
    if sorted(names) != branch_names(len(names)):
        raise Refused(f"branches are named p01, p02, ..., not {', '.join(names)}")
    opened = {name: data["branches"][name] for name in sorted(names)}
    return {"branches": {**state.branches, (state.iteration, item): opened}}


def branch_names(count: int) -> list[str]:
    """``p01``, ``p02``, ...: the names of so many branches."""
    return [f"p{number:02d}" for number in range(1, count + 1)]


def _requested(plan: Plan, state: State, data: _Data) -> _Changes:
    gate = _current_gate(plan, state, data["gate"])
    if state.gate(gate) is not None:
        raise Refused(f"gate {gate.key} was requested already")
    waiting = unready(plan, state, gate)
    if waiting:
        raise Refused(f"gate {gate.key} may not be requested: {waiting}")
    shown = state.shown(plan, gate)
    return _decide(plan, state, gate, data, GateState("requested", data["digest"], shown))


def _current_gate(plan: Plan, state: State, key: str) -> Instance:
    gate = _parse(key)
    known = isinstance(plan.steps.get(gate.step), Gate) and gate.branch is None
    if not known or gate.iteration != state.iteration or not state.is_current(gate):
        raise Refused(f"{key} is no gate of the run as it stands")
    return gate


def _decide(plan: Plan, state: State, gate: Instance, data: _Data, after: GateState) -> _Changes:
    if data["digest"] != asked(plan, state, gate):
        raise Refused(f"gate {gate.key} shows other content than {data['digest']}")
    return {"gates": state.gates.set(gate.key, after)}


def _answer(plan: Plan, state: State, data: _Data, status: str) -> tuple[Instance, _Changes]:
    gate = _current_gate(plan, state, data["gate"])
    known = state.gate(gate)
    if known is None or known.status != "requested":
        raise Refused(f"gate {gate.key} does not wait for an answer")
    signature = data.get("signature", "")
    if bool(signature) != bool(state.signers):
        wanted = "signed" if state.signers else "unsigned"
        raise Refused(f"gate {gate.key}: this run takes {wanted} answers only")
    answer = replace(
        known, status=status, by=data["by"], reason=data["reason"], signature=signature
    )
    return gate, _decide(plan, state, gate, data, answer)


def _approved(plan: Plan, state: State, data: _Data) -> _Changes:
    return _answer(plan, state, data, APPROVED)[1]


def _rejected(plan: Plan, state: State, data: _Data) -> _Changes:
    gate, answered = _answer(plan, state, data, REJECTED)
    rule = plan.gate(gate.step).on_reject
    rejections = sum(
        known.status == REJECTED
        for key, known in answered["gates"].items()
        if (one := Instance.parse(key)).step == gate.step and one.iteration == gate.iteration
    )
    if rule.goto is None or rejections > rule.max:
        return answered
    return {**answered, **_rework(plan, state, gate, rule.goto, data["reason"])}


def _rework(plan: Plan, state: State, origin: Instance, goto: str, reason: str) -> _Changes:
    """A new revision of ``goto`` and of everything below it in this iteration."""
    below = plan.descendants(goto)
    at = origin.iteration
    if origin.step not in below or state.home(plan, goto, at) != at:
        raise Refused(f"the plan sends {origin.key} back to {goto}, which is not before it")
    revisions = dict(state.revisions)
    for step in below:
        revisions[at, step] = revisions.get((at, step), 1) + 1
    branches = dict(state.branches)
    for head in plan.heads:
        if head.fan_out and plan.producer(head.fan_out.artifact).id in below:
            branches.pop((at, head.fan_out.item), None)
    feedback = {**state.feedback, (at, goto): reason}
    return {"revisions": revisions, "branches": branches, "feedback": feedback}


def _gate_skipped(plan: Plan, state: State, data: _Data) -> _Changes:
    gate = _current_gate(plan, state, data["gate"])
    if state.gate(gate) is not None:
        raise Refused(f"gate {gate.key} was requested already")
    if not moot(plan, state, gate):
        raise Refused(f"gate {gate.key} may not be skipped")
    skipped = GateState(SKIPPED, "", reason=data["reason"])
    return {"gates": state.gates.set(gate.key, skipped)}


def _sent_back(plan: Plan, state: State, data: _Data) -> _Changes:
    instance = sender(plan, state)
    if instance is None or instance.key != data["node"]:
        raise Refused(f"{data['node']} does not send the run back")
    back, reason = plan.phase(instance.step).back, goes_back(plan, state, instance)
    assert back is not None
    assert reason is not None
    at = (instance.iteration, instance.step)
    counted = {**state.sent_back, at: state.sent_back.get(at, 0) + 1}
    return {"sent_back": counted, **_rework(plan, state, instance, back.to, reason)}


def _continued(plan: Plan, state: State, data: _Data) -> _Changes:
    if not turn(plan, state) or data["iteration"] != state.iteration + 1:
        raise Refused(f"iteration {data['iteration']} may not begin")
    return {"iteration": data["iteration"]}


def _paused(plan: Plan, state: State, data: _Data) -> _Changes:
    if state.halt:
        raise Refused(str(state.halt))
    return {"halt": Halt(PAUSED, data["by"], data["reason"])}


def _resumed(plan: Plan, state: State, data: _Data) -> _Changes:
    if state.halt is None or state.halt.status != PAUSED:
        raise Refused(str(state.halt or "the run is not paused"))
    return {"halt": None}


def _cancelled(plan: Plan, state: State, data: _Data) -> _Changes:
    if state.halt and state.halt.status == CANCELLED:
        raise Refused(str(state.halt))
    return {"halt": Halt(CANCELLED, data["by"], data["reason"])}


def _plan_changed(plan: Plan, state: State, data: _Data) -> _Changes:
    """The state under the plan that comes: open questions are withdrawn, for they name the old one.

    That the history fits the new plan is for the trace to judge, which holds the history.
    """
    if data["from"] != plan.digest or data["to"] == plan.digest:
        raise Refused(f"the run is under plan {plan.digest[:16]}")
    if state.active:
        raise Refused(f"nodes are at work: {', '.join(state.active)}")
    decided: Ordered[str, GateState] = Ordered()
    for key, gate in state.gates.items():
        if gate.status in (APPROVED, REJECTED):
            decided = decided.set(key, gate)
    return {"plan": data["to"], "gates": decided}


def _ended(plan: Plan, state: State, data: _Data) -> _Changes:
    reason = ending(plan, state)
    if reason != data["reason"]:
        raise Refused(f"the run cannot end as {data['reason']}: it is {reason or 'not over'}")
    return {"ended": reason}


_STEPS: dict[str, Callable[[Plan, State, _Data], _Changes]] = {
    "node_entered": _entered,
    "node_left": _left,
    "node_abandoned": _abandoned,
    "node_skipped": _skipped,
    "branches_opened": _branches,
    "gate_requested": _requested,
    "gate_approved": _approved,
    "gate_rejected": _rejected,
    "gate_skipped": _gate_skipped,
    "sent_back": _sent_back,
    "loop_continued": _continued,
    "run_paused": _paused,
    "run_resumed": _resumed,
    "run_cancelled": _cancelled,
    "plan_changed": _plan_changed,
    "run_ended": _ended,
}

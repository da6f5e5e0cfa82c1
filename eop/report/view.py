"""One run as every report shows it: a pure function of the plan and the trace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from eop.patterns.progress import PhaseProgress
from eop.protocol.model import Gate
from eop.report.spending import spending
from eop.runtime.answers import commands
from eop.runtime.gates import APPROVED, REJECTED, REQUEST, gate_file
from eop.runtime.node import Instance, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eop.functions.training_progress import TrainingProgress
    from eop.patterns.progress import AgentProgress
    from eop.protocol.model import Phase, Plan
    from eop.report.spending import Spend
    from eop.runtime.events import Event
    from eop.runtime.node import Usage
    from eop.runtime.state import GateState, NodeState, State

WAITING = "waiting"
REQUESTED = "requested"
OPEN = "open"
AT_WORK = "at work"
MAY_GO_ON = "may go on"


@dataclass(frozen=True)
class NodeView:
    """A phase in one iteration and branch. ``status``: waiting, open, abandoned or an outcome.

    ``actions`` and ``wall_s`` are those of the last attempt, ``None`` when nobody measured them.
    """

    key: str
    step: str
    title: str
    branch: str | None
    status: str
    attempt: int
    reason: str
    actions: int | None
    wall_s: float | None


@dataclass(frozen=True)
class AtWork:
    """A node that is open, since the recorded time ``since``.

    ``reserved`` are the actions set aside for it, ``None`` for a function, which calls no agent.
    ``agents`` and ``training`` are what its files show, ``spent`` what its agents have cost so far.
    """

    key: str
    attempt: int
    since: str
    reserved: int | None
    spent: Usage | None = None
    agents: tuple[AgentProgress, ...] = ()
    training: TrainingProgress | None = None


@dataclass(frozen=True)
class GateView:
    """A gate in one iteration and revision.

    ``status``: waiting, requested, approved, rejected, or skipped when there was nothing to ask.
    ``request``, ``approve`` and ``reject`` are paths relative to the project's root, empty
    before the request. ``when`` is the recorded time of the decision, for people only.
    """

    run: str
    key: str
    step: str
    question: str
    status: str
    by: str
    reason: str
    when: str
    request: str
    approve: str
    reject: str
    signed: bool = False

    @property
    def commands(self) -> tuple[str, str]:
        """What a person types for yes and for no."""
        return commands(self.run, self.step, self.approve, self.reject, signed=self.signed)


@dataclass(frozen=True)
class IterationView:
    """One turn of the loop: its branches (item -> p01 -> title), its steps in document order."""

    number: int
    branches: dict[str, dict[str, str]]
    steps: tuple[NodeView | GateView, ...]


@dataclass(frozen=True)
class RunView:
    """A run: ``ended`` says why it is over, ``None`` while it is not.

    ``halt`` says who has paused or cancelled it and why, ``None`` when nobody has.
    """

    run: str
    protocol: str
    title: str
    events: int
    ended: str | None
    halt: str | None
    iterations: tuple[IterationView, ...]
    spend: tuple[Spend, ...]

    @property
    def standing(self) -> str:
        """In a word or two: how it ended, that it is paused, waits, is at work, or may go on."""
        if self.ended:
            return f"ended: {self.ended.replace('_', ' ')}"
        if self.halt:
            return "paused"
        if self.waiting:
            return "waits for a person"
        return AT_WORK if self._at_work else MAY_GO_ON

    @property
    def _at_work(self) -> bool:
        return any(step.status == OPEN for turn in self.iterations for step in turn.steps)

    @property
    def gates(self) -> tuple[GateView, ...]:
        """Every gate of every iteration, in each of its revisions."""
        steps = (step for iteration in self.iterations for step in iteration.steps)
        return tuple(step for step in steps if isinstance(step, GateView))

    @property
    def waiting(self) -> tuple[GateView, ...]:
        """Gates that ask a person now."""
        if self.ended:
            return ()
        return tuple(gate for gate in self.gates if gate.status == REQUESTED)


def view(plan: Plan, state: State, events: Sequence[Event] = ()) -> RunView:
    """The run's view; ``events`` may be left out.

    They add when a gate was decided, and tokens and dollars that the run does not limit.
    """
    decided = {
        (event.data["gate"], event.data["digest"]): event.time
        for event in events
        if event.type in ("gate_approved", "gate_rejected")
    }
    return RunView(
        run=state.run,
        protocol=f"{plan.name} {plan.version}",
        title=plan.title,
        events=state.seq,
        ended=state.ended,
        halt=str(state.halt) if state.halt else None,
        iterations=tuple(
            _iteration(plan, state, number, decided) for number in range(1, state.iteration + 1)
        ),
        spend=spending(plan, state, events),
    )


def at_work(
    plan: Plan,
    state: State,
    events: Sequence[Event],
    seen: Mapping[str, PhaseProgress | TrainingProgress],
) -> tuple[AtWork, ...]:
    """The open nodes; ``seen`` has what those do, by key, that show anything."""
    since = {e.data["node"]: e.time for e in events if e.type == "node_entered"}
    return tuple(_at_work(plan, state, key, since[key], seen.get(key)) for key in state.active)


def _at_work(
    plan: Plan,
    state: State,
    key: str,
    since: str,
    seen: PhaseProgress | TrainingProgress | None,
) -> AtWork:
    node, function = state.nodes[key], plan.phase(Instance.parse(key).step).function
    known = AtWork(key, node.attempt, since, None if function else node.reserve.actions)
    if isinstance(seen, PhaseProgress):
        return replace(known, spent=seen.spent, agents=seen.agents)
    return replace(known, training=seen)


def _iteration(
    plan: Plan, state: State, number: int, decided: dict[tuple[str, str], str]
) -> IterationView:
    branches = {
        item: dict(opened) for (turn, item), opened in state.branches.items() if turn == number
    }
    shown: list[NodeView | GateView] = []
    for name, step in plan.steps.items():
        if state.home(plan, name, number) != number:
            continue
        if isinstance(step, Gate):
            shown += _gates(state, step, number, decided)
        else:
            shown += _nodes(state, step, number)
    return IterationView(number, branches, tuple(shown))


def _nodes(state: State, phase: Phase, number: int) -> list[NodeView]:
    """The newest revision of a phase, once per branch; once when no branch is open yet."""
    paths = state.paths(number, phase.branch) or (None,)
    instances = [state.current(phase.id, number, path.name if path else None) for path in paths]
    return [_node(phase, instance, state.node(instance)) for instance in instances]


def _node(phase: Phase, instance: Instance, node: NodeState | None) -> NodeView:
    # A skipped node did no work: there is nothing that could be measured.
    worked = node is not None and node.status != Outcome.SKIPPED
    usage = node.usage if node and worked else None
    return NodeView(
        key=instance.key,
        step=phase.id,
        title=phase.title,
        branch=instance.branch,
        status=node.status if node else WAITING,
        attempt=node.attempt if node else 0,
        reason=node.reason if node else "",
        actions=usage.actions if usage else None,
        wall_s=usage.wall_s if usage else None,
    )


def _gates(
    state: State, gate: Gate, number: int, decided: dict[tuple[str, str], str]
) -> list[GateView]:
    """Every revision of a gate that was asked: a rejection is part of the story."""
    newest = state.current(gate.id, number)
    past = [Instance(number, gate.id, None, r) for r in range(1, newest.revision)]
    asked = [instance for instance in past if state.gate(instance)]
    return [_gate(gate, state, instance, decided) for instance in [*asked, newest]]


def _gate(
    gate: Gate, state: State, instance: Instance, decided: dict[tuple[str, str], str]
) -> GateView:
    known: GateState | None = state.gate(instance)

    def path(suffix: str) -> str:
        if known is None or not known.digest:
            return ""
        return gate_file(Path("gates"), state.run, instance, known.digest, suffix).as_posix()

    return GateView(
        run=state.run,
        key=instance.key,
        step=gate.id,
        question=gate.question,
        status=known.status if known else WAITING,
        by=known.by if known else "",
        reason=known.reason if known else "",
        when=decided.get((instance.key, known.digest), "") if known else "",
        request=path(REQUEST),
        approve=path(APPROVED),
        reject=path(REJECTED),
        signed=state.signers is not None,
    )

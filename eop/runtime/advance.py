"""Turn what people and jobs left on disk into events, until the run stands still."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode, Where
from eop.runtime import artifacts, fanout, gates
from eop.runtime.due import asked, due, gates_of, opens
from eop.runtime.frontier import Frontier, frontier
from eop.runtime.reduce import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from eop.protocol.model import Plan
    from eop.runtime.node import Instance
    from eop.runtime.state import State
    from eop.runtime.trace import Trace

_Event = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class GateView:
    """A gate that waits for a person: what to read, what to touch, and what counts for nothing."""

    instance: Instance
    digest: str
    request: Path
    approve: Path
    reject: Path
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Position:
    """Where a run stands: ``waiting`` gates need a person, ``ended`` says how it is over."""

    state: State
    frontier: Frontier
    waiting: tuple[GateView, ...]
    ended: str | None


def advance(root: Path, run: str, plan: Plan, trace: Trace) -> Position:
    """Record every event that is due, write the pages of waiting gates, and say where it stands.

    Idempotent. Raises ``EopError``: EOP734 when what a gate shows or branches come from is not
    what was committed, EOP736 when that list is malformed.
    """
    state = trace.state()
    if state.run != run:
        raise Refused(f"the trace is that of run '{state.run}', not of '{run}'")
    directory = root / "gates"
    while event := _next_event(root, directory, plan, state):
        try:
            state = trace.append(*event)
        except Refused:
            # Another process was faster: judge again what it left. Else the fault is real.
            newer = trace.state()
            if newer.seq == state.seq:
                raise
            state = newer
    waiting = () if state.ended else _waiting(root, directory, plan, state)
    return Position(state, frontier(plan, state), waiting, state.ended)


def _next_event(root: Path, directory: Path, plan: Plan, state: State) -> _Event | None:
    return (
        due(plan, state) or _decision(root, directory, plan, state) or _branches(root, plan, state)
    )


def _open_requests(plan: Plan, state: State) -> list[Instance]:
    return [
        gate
        for gate in gates_of(plan, state)
        if (known := state.gate(gate)) is not None and known.status == "requested"
    ]


def _decision(root: Path, directory: Path, plan: Plan, state: State) -> _Event | None:
    """The first answer that a person gave to a gate that waits."""
    if state.ended:
        return None
    for gate in _open_requests(plan, state):
        artifacts.check(root, state.shown(plan, gate))
        digest = asked(plan, state, gate)
        decision = gates.read_sentinel(directory, state.run, gate, digest)
        if decision.status != "none":
            answer = {"by": decision.by, "reason": decision.reason}
            return f"gate_{decision.status}", {"gate": gate.key, "digest": digest, **answer}
    return None


def _branches(root: Path, plan: Plan, state: State) -> _Event | None:
    phase = opens(plan, state)
    if phase is None or phase.fan_out is None:
        return None
    listed = state.artifact(plan, phase.fan_out.artifact, state.iteration)
    assert listed is not None, "a fan-out opens only from a committed list"
    artifacts.check(root, [listed])
    try:
        opened = fanout.read_branches(root / listed.path, phase.fan_out)
    except ValueError as error:
        raise EopError(
            "EOP736",
            f"no branches can be opened: {error}",
            where=Where(listed.path),
            hint=f"the phase that leaves '{phase.fan_out.artifact}' must leave a valid list",
            exit_code=ExitCode.STATE,
        ) from None
    return "branches_opened", {
        "iteration": state.iteration,
        "branches": opened,
        "artifact": listed.sha256,
    }


def _waiting(root: Path, directory: Path, plan: Plan, state: State) -> tuple[GateView, ...]:
    return tuple(_view(root, directory, plan, state, g) for g in _open_requests(plan, state))


def _view(root: Path, directory: Path, plan: Plan, state: State, gate: Instance) -> GateView:
    digest = asked(plan, state, gate)
    shown = state.shown(plan, gate)
    decision = gates.read_sentinel(directory, state.run, gate, digest)
    strays = gates.strays(directory, state.run, gate, digest)
    return GateView(
        gate,
        digest,
        gates.write_request(root, directory, state.run, plan, gate, shown),
        gates.gate_file(directory, state.run, gate, digest, gates.APPROVED),
        gates.gate_file(directory, state.run, gate, digest, gates.REJECTED),
        (*decision.problems, *strays),
    )

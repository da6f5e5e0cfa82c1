"""Turn what people and jobs left on disk into events, until the run stands still."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode, Where
from eop.runtime import artifacts, fanout
from eop.runtime.answers import EarlyAnswerError, decision, refuse_early, waiting
from eop.runtime.due import due, opens
from eop.runtime.frontier import Frontier, frontier
from eop.runtime.node import Instance
from eop.runtime.reduce import Refused
from eop.runtime.witnesses import remember

if TYPE_CHECKING:
    from pathlib import Path

    from eop.protocol.model import Plan
    from eop.runtime.answers import GateView
    from eop.runtime.state import State
    from eop.runtime.trace import Trace

_Event = tuple[str, dict[str, Any]]


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
    what was committed, EOP736 when that list is malformed, EOP743 for an answer that was there
    before its question, EOP744 and EOP745 when signed answers cannot be judged.
    """
    state = trace.state()
    if state.run != run:
        raise Refused(f"the trace is that of run '{state.run}', not of '{run}'")
    while event := _next_event(root, plan, state):
        try:
            _not_answered_yet(root, run, event)
            state = trace.append(*event)
        except (Refused, EarlyAnswerError):
            # Another process was faster: judge again what it left. Else the fault is real.
            newer = trace.state()
            if newer.seq == state.seq:
                raise
            state = newer
    remember(root / "runs" / run, state)
    asked = () if state.ended else waiting(root, plan, state)
    return Position(state, frontier(plan, state), asked, state.ended)


def _next_event(root: Path, plan: Plan, state: State) -> _Event | None:
    return due(plan, state) or decision(root, plan, state) or _branches(root, plan, state)


def _not_answered_yet(root: Path, run: str, event: _Event) -> None:
    kind, data = event
    if kind == "gate_requested":
        refuse_early(root, run, Instance.parse(data["gate"]), data["digest"])


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
        "item": phase.fan_out.item,
        "branches": opened,
        "artifact": listed.sha256,
    }

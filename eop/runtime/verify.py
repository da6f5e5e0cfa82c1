"""Re-derive a run from its plan, its trace and its files, and list all that does not agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.errors import EopError
from eop.core.files import read_json
from eop.protocol.model import Plan
from eop.runtime import budgets, facts, fanout, witnesses
from eop.runtime.artifacts import changed
from eop.runtime.gates import APPROVED, REJECTED, gate_file
from eop.runtime.lifecycle import is_final, outcome
from eop.runtime.node import Instance
from eop.runtime.sentinels import Decision, says
from eop.runtime.signatures import UnsignedError, pinned, statement
from eop.runtime.trace import NOT_CANONICAL, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.runtime.events import Event
    from eop.runtime.signatures import Signers
    from eop.runtime.state import State


def verify(root: Path, run: str, head: str | None = None) -> list[str]:
    """Findings about run ``run`` of the project at ``root``, one line each; empty when it holds.

    Reads ``plan.json``, the trace, ``head.json``, the artifacts, the requests, the sentinels and
    the outcome files; neither Snakemake nor anything that it keeps. ``head`` is the digest of an
    event, or its first digits, that somebody noted elsewhere: the trace must still hold it.
    """
    folder = root / "runs" / run
    plan = _plan(folder / "plan.json")
    if isinstance(plan, str):
        return [plan]
    trace = Trace(folder / "trace", plan)
    try:
        state = trace.state()
    except EopError as error:
        return [error.message]
    if state.run != run:
        return [f"the trace is that of run '{state.run}'"]
    lost = witnesses.cut(folder, trace.events)
    return [
        *([lost] if lost else []),
        *_noted(head, trace.events()),
        *(f"event {e.seq}: {NOT_CANONICAL}" for e in trace.events() if not e.is_canonical),
        *_artifacts(root, state),
        *facts.contradictions(root, plan, state),
        *_branches(root, plan, state, trace.events()),
        *_decisions(root, state),
        *budgets.overdrawn(plan, state),
        *_outcomes(folder, state),
        *witnesses.strangers(root, state, trace.events()),
    ]


def _plan(path: Path) -> Plan | str:
    try:
        return Plan.from_json(read_json(path))
    except EopError as error:
        return f"plan.json: {error.message}"
    except (KeyError, TypeError, AttributeError) as error:
        return f"plan.json is not a plan: {error}"


def _artifacts(root: Path, state: State) -> list[str]:
    findings = []
    for key, node in state.nodes.items():
        for artifact in node.artifacts:
            problem = changed(root, artifact)
            if problem:
                findings.append(f"{key}: {problem}")
    return findings


def _noted(head: str | None, events: Sequence[Event]) -> list[str]:
    """That no event is the one noted elsewhere: all before it hang on its digest."""
    if head is None or any(event.digest.startswith(head) for event in events):
        return []
    return [f"no event has the digest {head}: the trace was cut or written anew since that"]


def _branches(root: Path, plan: Plan, state: State, events: Sequence[Event]) -> list[str]:
    """Branches that are not those of the list which opened them."""
    committed = {a.sha256: a for node in state.nodes.values() for a in node.artifacts}
    findings = []
    for event in events:
        if event.type != "branches_opened":
            continue
        fan_out, listed = plan.fan_out(event.data["item"]), committed[event.data["artifact"]]
        if changed(root, listed):
            continue
        try:
            same = fanout.read_branches(root / listed.path, fan_out) == event.data["branches"]
        except ValueError:
            same = False
        if not same:
            what = f"the branches of '{event.data['item']}' are not those of {listed.path}"
            findings.append(f"event {event.seq}: {what}")
    return findings


def _decisions(root: Path, state: State) -> list[str]:
    """Recorded answers that nobody is known to have given: no sentinel, no valid signature."""
    try:
        signers = pinned(root, state)
    except EopError as error:
        return [error.message]
    findings = []
    for key, known in state.gates.items():
        if known.status not in (APPROVED, REJECTED):
            continue
        gate = Instance.parse(key)
        message = statement(state.run, gate, known.digest, known.status, known.reason)
        path = gate_file(root / "gates", state.run, gate, known.digest, known.status)
        answer = Decision(known.status, known.by, known.reason, known.signature)
        problem = says(path, answer, message) or _unsigned(signers, answer, message)
        if problem:
            findings.append(f"gate {key} is {known.status}, and {problem}")
    return findings


def _unsigned(signers: Signers | None, answer: Decision, message: bytes) -> str | None:
    """Why the recorded signature is not that of the recorded principal."""
    if signers is None:
        return None
    try:
        by = signers.principal(message, answer.signature)
    except UnsignedError as error:
        return f"its signature does not hold: {error}"
    return None if by == answer.by else f"it was signed by {by}, not by {answer.by}"


def _outcomes(folder: Path, state: State) -> list[str]:
    """Outcome files that say something else than the trace, or that it knows nothing of."""
    findings = []
    expected = {
        Instance.parse(key).directory: Instance.parse(key) for key in (*state.nodes, *state.gates)
    }
    # Node folders only: what lies in their workspaces belongs to the agents.
    nodes = [*folder.glob("it*/*/outcome.json"), *folder.glob("it*/p[0-9][0-9]/*/outcome.json")]
    for path in sorted(nodes):
        where = path.parent.relative_to(folder).as_posix()
        instance = expected.get(where)
        if instance is None:
            findings.append(f"{where}/outcome.json: the trace knows no such node")
            continue
        settled = is_final(state, instance) or state.gate(instance) is not None
        try:
            same = settled and read_json(path) == outcome(state, instance)
        except EopError as error:
            findings.append(f"{where}/outcome.json: {error.message}")
            continue
        if not same:
            findings.append(f"{where}/outcome.json does not say what the trace says")
    return findings

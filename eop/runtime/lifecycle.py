"""How a node enters and leaves: the only way in which work becomes part of a run.

The caller of ``enter`` and ``leave`` holds the lock of the node's folder all the while. So a node
that is open when its lock was free belongs to a process that died.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from eop.core.errors import EopError, ExitCode
from eop.protocol.model import Gate, Phase, Plan
from eop.runtime import artifacts, budgets, facts, fanout
from eop.runtime.events import OPTIONAL_UNITS
from eop.runtime.frontier import dependencies, enabled
from eop.runtime.node import Artifact, Instance, NodeResult, Outcome
from eop.runtime.state import OPEN, State

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from eop.runtime.trace import Trace

OUTCOME_SCHEMA = "outcome/1"


@dataclass(frozen=True)
class Entered:
    """The answer to ``enter``.

    ``run``: do the work as this ``attempt``, then ``leave``. ``adopt``: it has left before.
    ``skip``: it was recorded as skipped, or as out of budget. ``state`` is the run as it is now.
    """

    kind: Literal["run", "adopt", "skip"]
    attempt: int
    state: State
    reason: str = ""


def perform(
    trace: Trace,
    root: Path,
    plan: Plan,
    instance: Instance,
    work: Callable[[Entered], NodeResult],
) -> dict[str, Any]:
    """Enter, work and leave until the node has its last outcome; return its outcome document."""
    while (entered := enter(trace, plan, instance)).kind == "run":
        leave(trace, root, instance, entered.attempt, work(entered))
    return outcome(entered.state, instance)


def enter(trace: Trace, plan: Plan, instance: Instance) -> Entered:
    """Ask to do the work of a node, once its lock is held.

    Raises ``EopError``: EOP735 when it may not run now (exit 3 behind a closed gate or
    in a paused run, else 7),
    EOP734 when an artifact that it builds on is not what was committed.
    """
    state = trace.state()
    node = state.node(instance)
    if node is not None and node.status == OPEN:
        state = abandon(trace, instance, "its process died")
    verdict = enabled(plan, state, instance)
    if verdict.kind == "done":
        return Entered("adopt", state.nodes[instance.key].attempt, state, verdict.reason)
    if verdict.kind in ("skip", "budget"):
        state = trace.append("node_skipped", {"node": instance.key, "reason": verdict.reason})
        return Entered("skip", state.nodes[instance.key].attempt, state, verdict.reason)
    if verdict.kind != "run":
        raise _not_now(plan, state, instance, verdict.reason)
    artifacts.check(trace.root, _inputs(plan, state, instance))
    attempt = (state.nodes[instance.key].attempt if instance.key in state.nodes else 0) + 1
    reserve = _said(plan.phase(instance.step).reservation._asdict(), nothing=0)
    state = trace.append(
        "node_entered", {"node": instance.key, "attempt": attempt, "reserve": reserve}
    )
    return Entered("run", attempt, state)


def _said(amount: dict[str, Any], *, nothing: int | None) -> dict[str, Any]:
    """An amount as an event carries it: no tokens and dollars where they are ``nothing``."""
    silent = {unit for unit in OPTIONAL_UNITS if amount[unit] == nothing}
    return {unit: value for unit, value in amount.items() if unit not in silent}


def _not_now(plan: Plan, state: State, instance: Instance, reason: str) -> EopError:
    closed = any(
        isinstance(plan.steps[needed.step], Gate)
        and ((known := state.gate(needed)) is None or known.status == "requested")
        for needed in (dependencies(plan, state, instance) if instance.step in plan.steps else ())
    )
    return EopError(
        "EOP735",
        f"{instance.key} may not run now: {reason}",
        hint=f"`eop status --run {state.run}` shows what may run and what the run waits for",
        exit_code=ExitCode.GATE_CLOSED if closed or state.halt else ExitCode.STATE,
    )


def _inputs(plan: Plan, state: State, instance: Instance) -> list[Artifact]:
    """Artifacts that a node builds on: what its requirements left, what its gates showed."""
    found: list[Artifact] = []
    for needed in dependencies(plan, state, instance):
        if isinstance(plan.steps[needed.step], Gate):
            found.extend(state.shown(plan, needed))
        elif (node := state.node(needed)) is not None:
            found.extend(node.artifacts)
    return found


def leave(
    trace: Trace, root: Path, instance: Instance, attempt: int, result: NodeResult
) -> dict[str, Any]:
    """Commit what an attempt came to; return the node's outcome document.

    A result that calls itself completed and is not (an output missing or malformed, a fact that
    an expression reads missing, more actions than the phase allows) is committed as what it is. A
    function that ``failed`` or ``timed_out`` may be entered again while attempts are left:
    ``is_final`` tells.
    """
    phase = trace.plan.phase(instance.step)
    files, problems = _files(root, result)
    reason, came_to = result.reason, result.outcome
    known: dict[str, Any] = {}
    if came_to is Outcome.COMPLETED:
        over = budgets.overrun(phase, result.usage)
        known, wrong = facts.read(root, trace.plan, phase, files)
        faults = [over] if over else _faults(trace.plan, root, phase, files, [*problems, *wrong])
        if faults:
            came_to = Outcome.BUDGET_EXHAUSTED if over else Outcome.FAILED
            reason, known = "; ".join(faults), {}
    state = trace.append(
        "node_left",
        {
            "node": instance.key,
            "attempt": attempt,
            "outcome": came_to.value,
            "reason": reason,
            "artifacts": [artifact._asdict() for artifact in files],
            "facts": known,
            "usage": _said(result.usage._asdict(), nothing=None),
        },
    )
    return outcome(state, instance)


def _files(root: Path, result: NodeResult) -> tuple[list[Artifact], list[str]]:
    files: list[Artifact] = []
    problems: list[str] = []
    for name in sorted(result.artifacts):
        try:
            files.append(artifacts.commit(root, name, result.artifacts[name]))
        except ValueError as error:
            problems.append(str(error))
    return files, problems


def _faults(
    plan: Plan, root: Path, phase: Phase, files: list[Artifact], problems: list[str]
) -> list[str]:
    """Why outputs do not make a completed phase."""
    committed = {artifact.name: artifact for artifact in files}
    faults = list(problems)
    for output in phase.outputs:
        if output.name not in committed and not problems:
            faults.append(f"output '{output.name}' is missing: {output.file}")
    for opened in plan.phases:
        listed = committed.get(opened.fan_out.artifact) if opened.fan_out else None
        if listed is None or opened.fan_out is None:
            continue
        try:
            fanout.read_branches(root / listed.path, opened.fan_out)
        except ValueError as error:
            faults.append(str(error))
    return faults


def abandon(trace: Trace, instance: Instance, reason: str) -> State:
    """Record that the open attempt of a node is dead; its lock must be free or held by the caller.

    The attempt counts as spent in full, and not as a failure of the node.
    """
    node = trace.state().node(instance)
    attempt = node.attempt if node is not None else 1
    return trace.append(
        "node_abandoned", {"node": instance.key, "attempt": attempt, "reason": reason}
    )


def is_final(state: State, instance: Instance) -> bool:
    """Whether a node has its last outcome: no further attempt follows."""
    node = state.node(instance)
    return node is not None and node.final


def outcome(state: State, instance: Instance) -> dict[str, Any]:
    """A node's outcome document, from the state alone: no times, same state, same document.

    For a gate its recorded answer. EOP738 for a name of which the run knows nothing.
    """
    head = {"schema": OUTCOME_SCHEMA, "node": instance.key}
    gate, node = state.gate(instance), state.node(instance)
    if gate is not None:
        return {**head, "outcome": gate.status, "reason": gate.reason, "digest": gate.digest}
    if node is None:
        raise EopError(
            "EOP738",
            f"the run knows nothing of {instance.key}",
            hint=f"`eop status --run {state.run}` lists its nodes",
            exit_code=ExitCode.STATE,
        )
    return {
        **head,
        "outcome": str(node.status),
        "reason": node.reason,
        "artifacts": [artifact._asdict() for artifact in node.artifacts],
        "usage": {"actions": node.usage.actions if node.usage else None},
        "attempt": node.attempt,
    }

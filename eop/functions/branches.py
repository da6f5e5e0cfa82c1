"""How a branch ended: the step that decided it, and what it left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.core.files import read_json
from eop.functions.artifacts import Artifacts
from eop.runtime.joins import cut_off
from eop.runtime.node import Branch, Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from eop.project.project import Project
    from eop.protocol.model import Phase, Plan
    from eop.runtime.state import NodeState, State

REJECTED = "rejected_by_preflight"
CUT_OFF = "cut_off"


@dataclass(frozen=True)
class BranchEnd:
    """The end of a branch, from the trace.

    ``outcome`` is ``rejected_by_preflight``, ``completed``, or that of the first step that did not
    complete; a step that was only skipped says nothing while another says why. Where none does,
    because the join had enough without it, it is ``cut_off``. ``metrics`` is the file of its
    ``metrics`` document, ``None`` when it was never judged. ``steps`` holds every step that was
    entered or skipped.
    """

    outcome: str
    reason: str
    metrics: Path | None
    steps: dict[str, NodeState]


def candidate_branches(plan: Plan, state: State, iteration: int) -> list[Branch]:
    """The branches of an iteration that ``promote`` compares; those of other fan-outs are not."""
    joins = [phase.join for phase in plan.phases if phase.function == "promote" and phase.join]
    paths = [state.paths(iteration, plan.phase(join.of).branch) for join in joins]
    return [branch for found in paths for branch in found if branch is not None]


def branch_end(project: Project, state: State, iteration: int, branch: Branch) -> BranchEnd:
    """Read a branch's end from the state."""
    steps: dict[str, NodeState] = {}
    lost: list[tuple[Phase, NodeState]] = []
    for phase in project.plan.members(branch.item):
        node = state.node(state.current(phase.id, iteration, branch.name))
        if node is None:
            continue
        steps[phase.id] = node
        # A branch is judged by its work, not by whoever wrote about it afterwards.
        if "failed" not in phase.on_branch and not (node.completed or phase.optional):
            lost.append((phase, node))
    outcome, reason = _rejection(project, state, iteration, branch) or _cause(lost)
    if outcome == Outcome.SKIPPED and _cut_off(project.plan, state, iteration, branch, lost):
        outcome = CUT_OFF
    metrics = Artifacts(project, state).of_function("evaluate", iteration, branch)
    if outcome == Outcome.COMPLETED and metrics is None:
        outcome, reason = str(Outcome.FAILED), "it was never judged"
    return BranchEnd(outcome, reason, metrics if outcome == Outcome.COMPLETED else None, steps)


def _rejection(
    project: Project, state: State, iteration: int, branch: Branch
) -> tuple[str, str] | None:
    """The end of a branch whose preflight came to a report that does not pass."""
    path = Artifacts(project, state).of_function("preflight", iteration, branch)
    report = read_json(path) if path else None
    if report is None or report["passed"]:
        return None
    return REJECTED, f"preflight: {failures(report)}"


def failures(report: dict[str, Any]) -> str:
    """What a preflight report objects to, in one line."""
    bad = [item for item in report["invariants"] if item["status"] != "passed"]
    return "; ".join(f"{item['id']} ({item['title']}): {item['detail']}" for item in bad)


def _cause(lost: list[tuple[Phase, NodeState]]) -> tuple[str, str]:
    """Outcome and reason of a branch, from those of its steps that did not complete."""
    if not lost:
        return str(Outcome.COMPLETED), ""
    worked = [(phase, node) for phase, node in lost if node.status != Outcome.SKIPPED]
    phase, node = (worked or lost)[0]
    return _outcome(phase, node), f"{phase.id}: {node.reason}"


def _cut_off(
    plan: Plan,
    state: State,
    iteration: int,
    branch: Branch,
    lost: list[tuple[Phase, NodeState]],
) -> bool:
    nodes = (state.current(phase.id, iteration, branch.name) for phase, _ in lost)
    return any(cut_off(plan, state, node) for node in nodes)


def _outcome(phase: Phase, node: NodeState) -> str:
    rejected = phase.function == "preflight" and node.status == Outcome.FAILED
    return REJECTED if rejected else str(node.status)

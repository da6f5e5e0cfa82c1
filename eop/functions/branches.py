"""How a branch ended: the step that decided it, and what it left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.functions.artifacts import Artifacts
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from eop.project.project import Project
    from eop.protocol.model import Phase
    from eop.runtime.state import NodeState, State

REJECTED = "rejected_by_preflight"


@dataclass(frozen=True)
class BranchEnd:
    """The end of a branch, from the trace.

    ``outcome`` is ``completed`` or that of the first step that did not complete; ``metrics`` is
    the file of its ``metrics`` document, ``None`` when it was never judged. ``steps`` holds every
    step that was entered or skipped.
    """

    outcome: str
    reason: str
    metrics: Path | None
    steps: dict[str, NodeState]


def branch_end(project: Project, state: State, iteration: int, branch: str) -> BranchEnd:
    """Read a branch's end from the state."""
    steps: dict[str, NodeState] = {}
    outcome, reason = str(Outcome.COMPLETED), ""
    for phase in project.plan.phases:
        node = state.node(state.current(phase.id, iteration, branch)) if phase.branch else None
        if node is None:
            continue
        steps[phase.id] = node
        # A branch is judged by its work, not by whoever wrote about it afterwards.
        tells = "failed" not in phase.on_branch
        if tells and outcome == Outcome.COMPLETED and not node.completed:
            outcome, reason = _outcome(phase, node), f"{phase.id}: {node.reason}"
    metrics = Artifacts(project, state).of_function("evaluate", iteration, branch)
    if outcome == Outcome.COMPLETED and metrics is None:
        outcome, reason = str(Outcome.FAILED), "it was never judged"
    return BranchEnd(outcome, reason, metrics if outcome == Outcome.COMPLETED else None, steps)


def _outcome(phase: Phase, node: NodeState) -> str:
    rejected = phase.function == "preflight" and node.status == Outcome.FAILED
    return REJECTED if rejected else str(node.status)

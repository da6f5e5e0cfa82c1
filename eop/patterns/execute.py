"""Run the pattern of a phase and turn however it ends into the node's result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from eop.core.errors import EopError, ExitCode, Where
from eop.core.locks import LockHeldError, exclusive
from eop.patterns.bta import Bta
from eop.patterns.casting import absent_product
from eop.patterns.dual import Dual
from eop.patterns.linear import Linear
from eop.patterns.nodes import Nodes
from eop.patterns.outcomes import StoppedError
from eop.patterns.plan_merge import PlanMerge
from eop.patterns.plan_then_implement import PlanThenImplement
from eop.runtime.node import NodeResult, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from eop.patterns.task import Task


class _Pattern(Protocol):
    """One run of a pattern; ``tree`` is what has come of the target so far."""

    nodes: Nodes

    @property
    def tree(self) -> str: ...

    def run(self) -> NodeResult: ...

    def artifacts(self, tree: str) -> dict[str, Path]: ...


_PATTERNS: dict[str, Callable[[Nodes], _Pattern]] = {
    "linear": Linear,
    "dual": Dual,
    "bta": Bta,
    "plan_then_implement": PlanThenImplement,
    "plan_merge": PlanMerge,
}


def run(task: Task) -> NodeResult:
    """Do the work of an agent phase; called again after a kill, it goes on at the last commit.

    Whatever agents do ends in a ``NodeResult``: a result that is not ``completed`` carries, as
    evidence, the artifacts as far as they had come. ``EopError`` is for faults of the runtime or
    its configuration, exit LOCKED when another process works on the same node.
    """
    try:
        with exclusive(task.directory / "work" / ".lock"):
            return _run(task)
    except LockHeldError as holder:
        raise EopError(
            "EOP884",
            f"another process works on this node: {holder}",
            where=Where(str(task.directory)),
            hint="wait for it to end, then run again",
            exit_code=ExitCode.LOCKED,
        ) from holder


def _run(task: Task) -> NodeResult:
    if task.phase.pattern not in _PATTERNS:
        raise EopError(
            "EOP885",
            f"phase '{task.phase.id}' has the unknown pattern '{task.phase.pattern}'",
            hint=f"known patterns: {', '.join(_PATTERNS)}",
            exit_code=ExitCode.PROTOCOL,
        )
    missing = absent_product(task)
    if missing is not None:
        return NodeResult(Outcome.BLOCKED, missing)
    pattern = _PATTERNS[task.phase.pattern](Nodes(task))
    try:
        result = pattern.run()
    except StoppedError as stopped:
        evidence = pattern.artifacts(stopped.tree or pattern.tree)
        return NodeResult(stopped.outcome, stopped.reason, evidence, pattern.nodes.usage)
    absent = [out.name for out in task.phase.outputs if out.name not in result.artifacts]
    if absent:
        reason = f"outputs were not left: {', '.join(absent)}"
        return replace(result, outcome=Outcome.FAILED, reason=reason)
    return result

"""The pattern ``plan_then_implement``: only an approved plan is implemented."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.patterns.change import Change
from eop.patterns.deliver import deliver
from eop.patterns.plan import Plan
from eop.runtime.node import NodeResult, Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from eop.patterns.nodes import Nodes


class PlanThenImplement:
    """One run of the pattern: first the plan with its review, then the change with its own."""

    author = "planner"

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.plan = Plan(nodes, author=self.author)
        self.change = Change(nodes)

    @property
    def tree(self) -> str:
        """What has come of the target so far."""
        return self.change.tree

    def run(self) -> NodeResult:
        """Plan, then implement. Raises ``StoppedError`` when a node cannot go on."""
        ruling = self.change.make(self.plan.make(self.drafts()))
        artifacts, usage = self.artifacts(self.tree), self.nodes.usage
        return NodeResult(Outcome.COMPLETED, str(ruling), artifacts, usage)

    def drafts(self) -> dict[str, Path]:
        """What the plan is written from, besides the task's inputs."""
        return {}

    def artifacts(self, tree: str) -> dict[str, Path]:
        """The outputs as far as they have come; the plan and both reviews may be among them."""
        return deliver(self.nodes, tree, {**self.plan.left(), **self.change.left()})

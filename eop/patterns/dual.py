"""The pattern ``dual``: implement, then review and fix until the rule says that it is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.patterns.change import Change
from eop.patterns.deliver import deliver
from eop.runtime.node import NodeResult, Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from eop.patterns.nodes import Nodes


class Dual:
    """One run of the pattern."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.change = Change(nodes)

    @property
    def tree(self) -> str:
        """What has come of the target so far."""
        return self.change.tree

    def run(self) -> NodeResult:
        """Make the change. Raises ``StoppedError`` when a node cannot go on."""
        ruling = self.change.make({})
        artifacts, usage = self.artifacts(self.tree), self.nodes.usage
        return NodeResult(Outcome.COMPLETED, str(ruling), artifacts, usage)

    def artifacts(self, tree: str) -> dict[str, Path]:
        """The outputs as far as they have come; the review so far is one of them."""
        return deliver(self.nodes, tree, self.change.left())

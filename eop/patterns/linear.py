"""The pattern ``linear``: a chain of roles, each of which leaves all of the phase's outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.agents.contract import Mode
from eop.patterns.deliver import deliver
from eop.patterns.nodes import Work, expected
from eop.patterns.outcomes import StoppedError
from eop.runtime.node import NodeResult, Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from eop.patterns.nodes import Nodes


class Linear:
    """One run of the chain: the tree and the outputs as they stand."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.tree = nodes.base
        self.left: dict[str, Path] = {}

    def run(self) -> NodeResult:
        """Run the roles in the protocol's order.

        A later role is given what the one before it left as ``draft_<output>`` and leaves its own
        version; the last versions are the phase's outputs. Raises ``StoppedError``.
        """
        nodes, phase = self.nodes, self.nodes.task.phase
        mode = Mode.WRITE if "edit" in phase.tools else Mode.READ_ONLY
        outputs = expected(nodes.task)
        change_due = any(output.patch for output in phase.outputs)
        for role in phase.nodes:
            drafts = {f"draft_{name}": path for name, path in self.left.items()}
            done = nodes.agent(
                Work(
                    role,
                    self.tree,
                    {**nodes.given(), **drafts},
                    outputs,
                    mode,
                    may_change_nothing=not change_due or self.tree != nodes.base,
                )
            )
            self.tree, self.left = done.tree, done.outputs
        if change_due and self.tree == nodes.base:
            raise StoppedError(Outcome.FAILED, "no_change: the chain ends where it began")
        return NodeResult(Outcome.COMPLETED, "", self.artifacts(self.tree), nodes.usage)

    def artifacts(self, tree: str) -> dict[str, Path]:
        """The outputs as far as they have come."""
        return deliver(self.nodes, tree, self.left)

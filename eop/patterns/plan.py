"""A plan of a change, reviewed and revised until it is approved: nothing else may be built on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.agents.contract import Expected
from eop.core.canonical import file_digest
from eop.patterns.nodes import Work
from eop.patterns.outcomes import StoppedError
from eop.patterns.review import ReviewLoop
from eop.patterns.verdict import Verdict
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.patterns.attempts import Committed
    from eop.patterns.nodes import Nodes

PLAN = "plan"
ASKED = Expected(PLAN, "plan.md")


class Plan:
    """The plan and its review as they stand; ``author`` writes it and answers the findings."""

    def __init__(self, nodes: Nodes, *, author: str) -> None:
        self.nodes, self.author = nodes, author
        self.tree = nodes.base
        self.loop = ReviewLoop(nodes, self, reviewer="plan_reviewer", record="plan_review")
        self._path: Path | None = None

    def make(self, drafts: Mapping[str, Path]) -> dict[str, Path]:
        """The approved plan, by name; written from ``drafts`` where there are any.

        Raises ``StoppedError`` when a node cannot go on, or the rounds are spent without approval.
        """
        self._write({**self.nodes.given(), **drafts}, 1, self.author)
        if self.loop.run() is not Verdict.APPROVED:
            raise StoppedError(Outcome.FAILED, f"plan not approved: {self.loop.still_open()}")
        return self.shown()

    def left(self) -> dict[str, Path]:
        """The plan as it stands, and the record of its review."""
        return {**self.shown(), **self.loop.file()}

    def check(self) -> Committed | None:
        """No check can run on a plan."""
        return None

    def shown(self) -> dict[str, Path]:
        """The plan as it stands."""
        return {PLAN: self._path} if self._path else {}

    def state(self) -> dict[str, Any]:
        """The digest of the plan that was reviewed."""
        return {name: file_digest(path) for name, path in self.shown().items()}

    def mend(self, inputs: dict[str, Path], turn: int) -> None:
        """Have its author write it anew."""
        self._write(inputs, turn + 1, "plan_fixer")

    def _write(self, inputs: dict[str, Path], turn: int, prompt: str) -> None:
        work = Work(self.author, self.tree, inputs, [ASKED], turn=turn, prompt=prompt)
        done = self.nodes.agent(work)
        self._path = done.outputs[PLAN]

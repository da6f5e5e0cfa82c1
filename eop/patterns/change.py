"""A change of the target: implemented by one role, reviewed by another, mended by a third."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.agents import patch
from eop.agents.contract import Mode
from eop.core.canonical import file_digest
from eop.patterns.nodes import Work, expected
from eop.patterns.outcomes import StoppedError
from eop.patterns.review import ReviewLoop
from eop.patterns.verdict import Verdict
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.patterns.attempts import Committed
    from eop.patterns.nodes import Nodes


class Change:
    """The tree, the outputs and the review as they stand."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.tree = nodes.base
        self.loop = ReviewLoop(nodes, self, reviewer="reviewer", record="review")
        self._given: dict[str, Path] = {}
        self._left: dict[str, Path] = {}
        self._checked: Committed | None = None

    def make(self, given: Mapping[str, Path]) -> Verdict:
        """Implement from ``given`` and the task's inputs, then review and mend.

        Raises ``StoppedError`` when a node cannot go on, nothing is changed in the end, or the
        review lets it not pass.
        """
        nodes = self.nodes
        self._given = dict(given)
        inputs = {**nodes.given(), **self._given}
        done = nodes.agent(Work("implementer", self.tree, inputs, expected(nodes.task), Mode.WRITE))
        self.tree, self._left = done.tree, done.outputs
        ruling = self.loop.run()
        if self.tree == nodes.base:
            raise StoppedError(Outcome.FAILED, "no_change: the fixes undid the change")
        if ruling is Verdict.NOT_APPROVED:
            reason = f"review not approved: {self.loop.still_open()}"
            raise StoppedError(Outcome.FAILED, reason, self.tree)
        return ruling

    def left(self) -> dict[str, Path]:
        """What has come of it so far, the record of the review included."""
        return {**self._left, **self.loop.file()}

    def check(self) -> Committed | None:
        """The task's check, on the tree as it stands."""
        self._checked = self.nodes.check(self.tree)
        return self._checked

    def shown(self) -> dict[str, Path]:
        """What it was made from, the patch, and what the check said."""
        change = patch.diff(self.nodes.store, self.nodes.base, self.tree)
        report = self._checked.outputs if self._checked else {}
        return {**self._given, "patch": self.nodes.keep("patch.diff", change), **report}

    def state(self) -> dict[str, Any]:
        """The tree that was reviewed, and how its check ended."""
        checked = self._checked
        report = checked and {
            "passed": checked.facts["passed"],
            "sha256": file_digest(checked.outputs["check"]),
        }
        return {"tree": self.tree, "check": report}

    def mend(self, inputs: dict[str, Path], turn: int) -> None:
        """Have the fixer answer the findings; to change nothing is an answer too."""
        work = Work("fixer", self.tree, inputs, mode=Mode.WRITE, turn=turn, may_change_nothing=True)
        self.tree = self.nodes.agent(work).tree

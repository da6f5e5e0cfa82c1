"""The review loop: a reviewer's findings, the verdict by rule, and mending until it is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from eop.agents.contract import Expected
from eop.core.canonical import canonical_json
from eop.core.errors import EopError, ExitCode
from eop.core.files import read_json, write_json
from eop.patterns import verdict
from eop.patterns.nodes import Work, schema_of
from eop.patterns.verdict import Verdict
from eop.protocol.model import Review

if TYPE_CHECKING:
    from pathlib import Path

    from eop.patterns.attempts import Committed
    from eop.patterns.nodes import Nodes


class Reviewed(Protocol):
    """The work that is reviewed, as it stands: a change of the target, or a plan."""

    tree: str

    def check(self) -> Committed | None:
        """Run the check on it, where there is one; before each review."""

    def shown(self) -> dict[str, Path]:
        """What reviewer and fixer are handed of it."""

    def state(self) -> dict[str, Any]:
        """Which version it is, for the record."""

    def mend(self, inputs: dict[str, Path], turn: int) -> None:
        """Answer the open findings among ``inputs``; ``turn`` is the round they are of."""


class ReviewLoop:
    """Rounds of review over one work by one role; the findings as they stand."""

    def __init__(self, nodes: Nodes, work: Reviewed, *, reviewer: str, record: str) -> None:
        self.nodes, self.work, self.reviewer = nodes, work, reviewer
        self.review = nodes.task.phase.review or Review()
        self.findings: list[verdict.Finding] = []
        self._record = record
        self._rounds: list[dict[str, Any]] = []
        self._check: Committed | None = None

    def run(self) -> Verdict:
        """Go round by round to a verdict other than ``fix``.

        Raises ``StoppedError`` when a node cannot go on.
        """
        for number in range(1, self.review.rounds + 1):
            ruling = self._round(number, last=number == self.review.rounds)
            if ruling is not Verdict.FIX:
                return ruling
            self.work.mend(self._given(), number)
        raise EopError("EOP883", "a review needs at least one round", exit_code=ExitCode.PROTOCOL)

    def file(self) -> dict[str, Path]:
        """The record of the rounds so far, by the name of its output."""
        if not self._rounds:
            return {}
        record = {
            "schema": "review/1",
            "verdict": self._rounds[-1]["verdict"],
            "until": self.review.until,
            "rounds": self._rounds,
            "findings": self.findings,
        }
        path = self.nodes.folder / f"{self._record}.json"
        write_json(path, record)
        return {self._record: path}

    def still_open(self) -> str:
        """What keeps the work from being approved, in words."""
        claims = [f["claim"] for f in self.findings if f["status"] == verdict.OPEN]
        failed = self._check is not None and not self._check.facts["passed"]
        return "; ".join([*claims, *(["the check failed"] if failed else [])])

    def _round(self, number: int, *, last: bool) -> Verdict:
        self._check = check = self.work.check()
        asked = Expected("review", verdict.REVIEW_FILE, schema_of(self.nodes.task, "findings"))
        done = self.nodes.agent(
            Work(self.reviewer, self.work.tree, self._given(), [asked], turn=number)
        )
        review = read_json(done.outputs["review"])
        self.findings = verdict.merge(self.findings, review["findings"])
        ruling = verdict.judge(
            self.findings,
            until=self.review.until,
            check_passed=check.facts["passed"] if check else None,
            last_round=last,
        )
        self._rounds.append(
            {
                "round": number,
                **self.work.state(),
                "verdict": str(ruling),
                "worst_open": verdict.worst_open(self.findings),
                "reviewer": done.facts["product"],
                **review,
            }
        )
        return ruling

    def _given(self) -> dict[str, Path]:
        """What reviewer and fixer are handed besides the task's inputs."""
        given = {**self.nodes.given(), **self.work.shown()}
        if self._rounds:
            given["findings"] = self.nodes.keep("findings.json", canonical_json(self.findings))
        return given

"""The pattern ``dual``: implement, then review and fix until the rule says that it is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.agents import patch
from eop.agents.contract import Expected, Mode
from eop.core.canonical import canonical_json, file_digest
from eop.core.errors import EopError, ExitCode
from eop.core.files import read_json, write_json
from eop.patterns import verdict
from eop.patterns.deliver import deliver
from eop.patterns.nodes import Work, expected, schema_of
from eop.patterns.outcomes import StoppedError
from eop.patterns.verdict import Verdict
from eop.protocol.model import Review
from eop.runtime.node import NodeResult, Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from eop.patterns.attempts import Committed
    from eop.patterns.nodes import Nodes

_REVIEW = "review"


class Dual:
    """One run of the loop: the tree and the findings as they stand."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.review = nodes.task.phase.review or Review()
        self.tree = nodes.base
        self.left: dict[str, Path] = {}
        self.findings: list[verdict.Finding] = []
        self.rounds: list[dict[str, Any]] = []
        self.check: Committed | None = None

    def run(self) -> NodeResult:
        """Implement, then go round by round. Raises ``StoppedError`` when a node cannot go on."""
        nodes = self.nodes
        outputs = expected(nodes.task, skip=[_REVIEW])
        done = nodes.agent(Work("implementer", self.tree, nodes.given(), outputs, Mode.WRITE))
        self.tree, self.left = done.tree, done.outputs
        ruling = self._rounds()
        if self.tree == nodes.base:
            raise StoppedError(Outcome.FAILED, "no_change: the fixes undid the change")
        if ruling is Verdict.NOT_APPROVED:
            raise StoppedError(
                Outcome.FAILED, f"review not approved: {self._still_open()}", self.tree
            )
        return NodeResult(Outcome.COMPLETED, str(ruling), self.artifacts(self.tree), nodes.usage)

    def artifacts(self, tree: str) -> dict[str, Path]:
        """The outputs as far as they have come; the review so far is one of them."""
        return deliver(self.nodes, tree, {**self.left, **self._review_file()})

    def _rounds(self) -> Verdict:
        for number in range(1, self.review.rounds + 1):
            ruling = self._review_round(number, last=number == self.review.rounds)
            if ruling is not Verdict.FIX:
                return ruling
            self.tree = self._fix(number)
        raise EopError("EOP883", "a review needs at least one round", exit_code=ExitCode.PROTOCOL)

    def _review_round(self, number: int, *, last: bool) -> Verdict:
        nodes = self.nodes
        self.check = check = nodes.check(self.tree)
        asked = Expected(_REVIEW, verdict.REVIEW_FILE, self._schema())
        done = nodes.agent(Work("reviewer", self.tree, self._material(), [asked], turn=number))
        review = read_json(done.outputs[_REVIEW])
        self.findings = verdict.merge(self.findings, review["findings"])
        passed = check.facts["passed"] if check else None
        ruling = verdict.judge(
            self.findings, until=self.review.until, check_passed=passed, last_round=last
        )
        self.rounds.append(
            {
                "round": number,
                "tree": self.tree,
                "verdict": str(ruling),
                "worst_open": verdict.worst_open(self.findings),
                "reviewer": done.facts["product"],
                "check": _check_record(check),
                **review,
            }
        )
        return ruling

    def _fix(self, number: int) -> str:
        done = self.nodes.agent(
            Work(
                "fixer",
                self.tree,
                self._material(),
                mode=Mode.WRITE,
                turn=number,
                may_change_nothing=True,
            )
        )
        return done.tree

    def _material(self) -> dict[str, Path]:
        """What reviewer and fixer are handed besides the task's inputs."""
        nodes = self.nodes
        change = patch.diff(nodes.store, nodes.base, self.tree)
        given = {**nodes.given(), "patch": nodes.keep("patch.diff", change)}
        if self.check is not None:
            given |= self.check.outputs
        if self.rounds:
            given["findings"] = nodes.keep("findings.json", canonical_json(self.findings))
        return given

    def _schema(self) -> dict[str, Any]:
        """The schema of the phase's output ``review`` where it names one: a reviewer's file."""
        declared = next((o for o in self.nodes.task.phase.outputs if o.name == _REVIEW), None)
        schema = schema_of(self.nodes.task, declared.schema) if declared else None
        return schema or verdict.REVIEW_SCHEMA

    def _review_file(self) -> dict[str, Path]:
        if not self.rounds:
            return {}
        record = {
            "schema": "review/1",
            "verdict": self.rounds[-1]["verdict"],
            "until": self.review.until,
            "rounds": self.rounds,
            "findings": self.findings,
        }
        path = self.nodes.folder / "review.json"
        write_json(path, record)
        return {_REVIEW: path}

    def _still_open(self) -> str:
        claims = [f["claim"] for f in self.findings if f["status"] == verdict.OPEN]
        failed = self.check is not None and not self.check.facts["passed"]
        return "; ".join([*claims, *(["the check failed"] if failed else [])])


def _check_record(check: Committed | None) -> dict[str, Any] | None:
    if check is None:
        return None
    return {"passed": check.facts["passed"], "sha256": file_digest(check.outputs["check"])}

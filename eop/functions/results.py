"""What came of each row of an iteration, gathered from the trace and the committed files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.core.files import read_json
from eop.functions.artifacts import EXPERIMENT_FILE
from eop.functions.branches import REJECTED, branch_end, candidate_branches
from eop.functions.lineage import base_id, entry_id, popularity_id
from eop.functions.recipes import start_config
from eop.leaderboard import Proposal
from eop.runtime.artifacts import check
from eop.runtime.node import Instance, Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from eop.functions.context import Context
    from eop.project.project import Project
    from eop.runtime.node import Branch
    from eop.runtime.state import NodeState

_BASE = Proposal("base", "The base: the pinned snapshot, unchanged", "What proposals must beat.")
_POPULARITY = Proposal(
    "popularity", "Popularity: the items seen most in training", "What any model must beat."
)


@dataclass(frozen=True)
class Fit:
    """A ``checkpoint`` document and the targets judged with it; ``mark`` names its files."""

    mark: str
    checkpoint: dict[str, Any]
    targets: tuple[str, ...]

    @property
    def name(self) -> str:
        """The function that trained it; the baseline's are named alike."""
        return "refit" if self.mark else "train"


@dataclass(frozen=True)
class Result:
    """One row to be. ``metrics``, ``checkpoint``, ``preflight`` and the like are documents.

    ``refit`` is there when the test was judged with checkpoints of its own. ``nodes`` holds every
    node of the row; ``None`` stands for what the row never came to.
    """

    id: str
    kind: str
    proposal: Proposal
    nodes: dict[Instance, NodeState]
    iteration: int | None = None
    branch: str | None = None
    parent: str | None = None
    outcome: str = str(Outcome.COMPLETED)
    reason: str = ""
    metrics: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    refit: dict[str, Any] | None = None
    patch: Path | None = None
    experiment: Path | None = None
    start: dict[str, Any] | None = None
    preflight: dict[str, Any] | None = None
    verdict: dict[str, Any] | None = None
    analysis: str | None = None

    @property
    def fits(self) -> list[Fit]:
        """The trainings behind the row, each with the targets that it was judged on."""
        refit = [Fit("-refit", self.refit["checkpoint"], ("test",))] if self.refit else []
        targets = ("validation",) if refit else ("validation", "test")
        return [*([Fit("", self.checkpoint, targets)] if self.checkpoint else []), *refit]

    @property
    def sealed(self) -> dict[str, Any] | None:
        """The document that seals the row's test numbers; ``None`` when the test was not read."""
        document = self.refit or self.metrics
        return document if document and document["sealed"] else None

    @property
    def not_reproducible(self) -> str | None:
        """Why it cannot be made again; ``None`` when it can."""
        if self.outcome == REJECTED and self.preflight is None:
            return "the preflight never came to a report that could be made again"
        if self.outcome in (Outcome.COMPLETED, REJECTED):
            return None
        return f"it ended as {self.outcome} before there was a result to make again"


def references(context: Context) -> list[Result]:
    """The rows to compare with: the base and popularity, from the baseline's measurement."""
    measured = read_json(context.produced("baseline"))
    phase = next(p for p in context.project.plan.phases if p.function == "baseline")
    instance = context.state.current(phase.id, 1)
    nodes = {instance: context.state.nodes[instance.key]}
    base = Result(
        base_id(context.project),
        "base",
        _BASE,
        nodes,
        metrics=measured["metrics"],
        checkpoint=measured["checkpoint"],
        refit=measured.get("refit"),
        experiment=context.project.base_experiment,
    )
    popularity = Result(
        popularity_id(context.project),
        "popularity",
        _POPULARITY,
        {},
        metrics=measured["popularity"],
    )
    return [base, popularity]


def candidates(context: Context) -> list[Result]:
    """The rows of this iteration's branches, the failed ones among them."""
    decision = read_json(context.produced("promote"))
    alpha = decision.get("rule", {}).get("alpha")
    verdicts = {verdict["entry"]: {**verdict, "alpha": alpha} for verdict in decision["candidates"]}
    branches = candidate_branches(context.project.plan, context.state, context.instance.iteration)
    return [_candidate(context, branch, decision["parent"], verdicts) for branch in branches]


def _candidate(
    context: Context, branch: Branch, parent: str, verdicts: dict[str, dict[str, Any]]
) -> Result:
    project, state, iteration = context.project, context.state, context.instance.iteration
    end = branch_end(project, state, iteration, branch)
    item = context.artifacts.proposal(iteration, branch)
    left = _left(context, end.steps)
    patch = left.get("patch")
    if project.plan.runs("compose"):
        patch = context.artifacts.patch(iteration, branch)
    return Result(
        id=entry_id(project, iteration, branch),
        kind="candidate",
        proposal=Proposal(item["id"], item["title"], item["hypothesis"]),
        nodes={state.current(step, iteration, branch.name): n for step, n in end.steps.items()},
        iteration=iteration,
        branch=branch.name,
        parent=parent,
        outcome=end.outcome,
        reason=end.reason,
        metrics=read_json(end.metrics) if end.metrics else None,
        checkpoint=read_json(left["train"]) if "train" in left else None,
        refit=read_json(left["refit"]) if "refit" in left else None,
        patch=patch if patch and patch.stat().st_size else None,
        experiment=left.get("experiment"),
        start=_start(project, item),
        preflight=read_json(left["preflight"]) if "preflight" in left else None,
        verdict=verdicts[entry_id(project, iteration, branch)],
        analysis=left["analysis"].read_text() if "analysis" in left else None,
    )


def _start(project: Project, item: dict[str, Any]) -> dict[str, Any] | None:
    """Whose weights a fine-tuning began with, and the experiment config that they come from."""
    config = start_config(project, item) if project.plan.runs("compose") else None
    return {"of": item["start"]["of"], "config": config} if config else None


def _left(context: Context, steps: dict[str, NodeState]) -> dict[str, Path]:
    """Files by what they are for. A failed node's files count: a lost diff is a lost lesson."""
    found: dict[str, Path] = {}
    for step, node in steps.items():
        phase = context.project.plan.phase(step)
        outputs = {output.name: output for output in phase.outputs}
        check(context.root, node.artifacts)
        for artifact in node.artifacts:
            output = outputs[artifact.name]
            path = context.root / artifact.path
            if output.patch:
                found["patch"] = path
            elif output.file == EXPERIMENT_FILE:
                found["experiment"] = path
            elif phase.function:
                found[phase.function] = path
            elif "failed" in phase.on_branch:
                found["analysis"] = path
    return found

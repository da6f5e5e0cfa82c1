"""Who is champion, and what entries are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode
from eop.core.files import read_json
from eop.functions.artifacts import Artifacts
from eop.functions.branches import branch_end, candidate_branches

if TYPE_CHECKING:
    from pathlib import Path

    from eop.project.project import Project
    from eop.runtime.node import Branch
    from eop.runtime.state import State


@dataclass(frozen=True)
class Lineage:
    """The champion that an iteration starts from.

    ``patch`` is against the pinned snapshot, ``None`` when the champion changes no code;
    ``metrics`` is its ``metrics`` document, ``None`` before anything was measured; ``sealed`` the
    document that seals its test.
    """

    entry: str
    patch: Path | None
    experiment: Path
    metrics: dict[str, Any] | None
    sealed: dict[str, Any] | None = None


def base_id(project: Project) -> str:
    """Entry id of the unpatched snapshot."""
    return f"{project.run}-base"


def popularity_id(project: Project) -> str:
    """Entry id of the popularity baseline."""
    return f"{project.run}-popularity"


def entry_id(project: Project, iteration: int, branch: Branch) -> str:
    """Entry id of a proposal."""
    return f"{project.run}-it{iteration:02d}-{branch.name}"


def start(project: Project, state: State, iteration: int) -> Lineage:
    """The champion at the start of ``iteration``: what the decisions before it came to.

    Raises ``EopError`` (EOP723) when the last decision names an entry that was never judged, or
    that is none of this run's: nothing is built on such a patch.
    """
    artifacts = Artifacts(project, state)
    named: str | None = None
    for earlier in range(iteration - 1, 0, -1):
        decision = artifacts.of_function("promote", earlier)
        if decision is None:
            continue
        champion = read_json(decision)["champion"]
        if named not in (None, champion):
            break
        named = champion
        for branch in candidate_branches(project.plan, state, earlier):
            if entry_id(project, earlier, branch) == champion:
                if branch_end(project, state, earlier, branch).metrics is None:
                    raise _no_champion(champion, "was never judged")
                return _of_branch(project, artifacts, earlier, branch)
    if named not in (None, base_id(project)):
        raise _no_champion(named, "is no candidate of this run")
    baseline = artifacts.of_function("baseline", 1)
    measured = read_json(baseline) if baseline else {"metrics": None}
    sealed = measured.get("refit", measured["metrics"])
    return Lineage(base_id(project), None, project.base_experiment, measured["metrics"], sealed)


def _no_champion(entry: str | None, why: str) -> EopError:
    return EopError(
        "EOP723",
        f"a decision makes a champion of '{entry}', which {why}",
        hint="`eop verify` says what has changed; nothing is built on it",
        exit_code=ExitCode.STATE,
    )


def _of_branch(project: Project, artifacts: Artifacts, iteration: int, branch: Branch) -> Lineage:
    metrics = artifacts.of_function("evaluate", iteration, branch)
    assert metrics, "a champion has been judged"
    refit = artifacts.of_function("refit", iteration, branch)
    return Lineage(
        entry_id(project, iteration, branch),
        artifacts.patch(iteration, branch),
        artifacts.experiment(iteration, branch) or project.base_experiment,
        read_json(metrics),
        read_json(refit or metrics),
    )

"""`snakemake --report`: what a run has come to, as it stands. Nothing runs, nothing is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snakemake.io import report
from snakemake.sourcecache import LocalSourceFile

from eop.compile.results import CAPTIONS, Result, left_or_open, of_page, of_step, of_whole
from eop.compile.run import outcome_path
from eop.core.errors import EopError, ExitCode
from eop.core.files import dumps, write_if_changed
from eop.project.project import Project
from eop.runtime.frontier import frontier
from eop.runtime.lifecycle import outcome
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from eop.runtime.frontier import Frontier
    from eop.runtime.state import State

    # Writes the pages that the report shows: paths with their iteration, none for the whole run.
    Pages = Callable[[Path, str], list[tuple[str, int | None]]]


def asked_for(argv: Sequence[str]) -> bool:
    """Whether this is a call of ``snakemake`` that only reports.

    Snakemake tells the workflow only when it is parsed and its jobs are known.
    """
    words = [word.partition("=")[0] for word in argv]
    return "--report" in words and "--report-after-run" not in words


def begun(project: Project) -> Project:
    """The run as it was begun, whatever has become of protocol and config since.

    Raises ``EopError`` (EOP814) when it was not: a report begins no run.
    """
    if not (project.run_dir / "plan.json").is_file():
        raise EopError(
            "EOP814",
            f"no run '{project.run}' has begun in {project.root}, so there is nothing to report",
            hint="`snakemake --cores N` begins it; another run is chosen with --config run=NAME",
            exit_code=ExitCode.STATE,
        )
    return Project.of_run(project.root, project.run)


def standing(project: Project) -> tuple[State, Frontier]:
    """Where the run stands, from its events alone."""
    state = Trace(project.trace_dir, project.plan).state()
    return state, frontier(project.plan, state)


def shown(project: Project, write_pages: Pages) -> list[str]:
    """Files that no rule makes, flagged for the report: pages, and what has left earlier.

    That is in iterations that are over, and in this one before somebody sent it back.
    """
    state, reached = standing(project)
    pages = [
        (path, of_page(project.plan, iteration) if iteration else of_whole())
        for path, iteration in write_pages(project.root, project.run)
    ]
    earlier = []
    for instance in left_or_open(state):
        node = state.node(instance)
        if instance not in reached.instances and (node is None or node.final):
            path = outcome_path(project, instance)
            # A gate that was refused is written down when its iteration is over, and shown before.
            write_if_changed(project.root / path, dumps(outcome(state, instance)))
            earlier.append((path, of_step(project.plan, state, instance)))
    return [_flagged(project.root, path, result) for path, result in (*pages, *earlier)]


def _flagged(root: Path, path: str, result: Result) -> str:
    flag = result.flag(str(root / CAPTIONS))
    marked: str = report(path, **{**flag, "caption": LocalSourceFile(flag["caption"])})
    return marked

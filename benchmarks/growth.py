"""What grows with the proposals of a run: its trace, its plan, a job's way in and out."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import child
from benchmarks.harness import best, cpu_seconds
from benchmarks.table import Table, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.child import Row
    from benchmarks.grid import Grid
    from eop.project.project import Project

_NOTE = (
    "The demo's protocol, 50 proposals an iteration, in the moment in which the branches of the "
    "last iteration have opened. CPU seconds, those of child processes included. Fold: the state "
    "from the files of the trace, best of three. Plan: `snakemake -n`, that is the start of "
    "Snakemake, the fold, the rules and the graph; the first call also writes a file for each node "
    "that has left. Job: what a job of one node spends on entering and leaving, in a process of "
    "its own."
)
_PROPOSALS = (10, 100, 1000, 10000)
_QUICK = (10,)
_JOB = """
import sys, time
from pathlib import Path
from eop.driver import node
from eop.project.project import Project
from eop.runtime.lifecycle import enter, leave
from eop.runtime.node import Instance, NodeResult, Outcome
from eop.runtime.trace import Trace
project = Project.of_run(Path.cwd(), sys.argv[1])
at = Instance.parse(sys.argv[2])
trace = Trace.resumed(project.trace_dir, project.plan)
entered = enter(trace, project.plan, at)
leave(trace, Path.cwd(), at, entered.attempt, NodeResult(Outcome.FAILED, "bench"))
"""
"""All of a job but its work: what `run_node` imports and does before and after it."""


def rows(grid: Grid) -> Iterator[Row]:
    """Measure run after run."""
    for proposals in _QUICK if grid.quick else _PROPOSALS:
        yield child.run(__name__, {"proposals": proposals}, environment={})


def measure(case: Row) -> Row:
    """One run, in a folder of its own."""
    from benchmarks.proposals import project_with
    from eop.runtime.trace import Trace

    with tempfile.TemporaryDirectory() as scratch:
        project = project_with(Path(scratch) / "project", case["proposals"])
        trace = Trace(project.trace_dir, project.plan)
        figures = {
            "events": len(trace.events()),
            "fold_s": best(lambda: Trace(project.trace_dir, project.plan).state()),
            "first_plan_s": cpu_seconds(lambda: _plan(project)),
        }
        began = time.perf_counter()
        figures["plan_s"] = cpu_seconds(lambda: _plan(project))
        figures["plan_wall_s"] = time.perf_counter() - began
        figures["job_s"] = _job(project, trace.state().iteration)
        return figures


def _plan(project: Project) -> None:
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "-n", "--quiet", "all"]
    subprocess.run(command, cwd=project.root, capture_output=True, check=True)


def _job(project: Project, iteration: int) -> float:
    """CPU seconds of a job's own process beyond those of one that only starts Snakemake's script.

    The best of three: each enters another node.
    """
    nodes = iter(f"it{iteration:02d}_p{number:02d}_implement" for number in range(1, 4))
    bare = best(lambda: _python(project, "import snakemake.script"))
    whole = best(
        lambda: _python(project, f"import snakemake.script\n{_JOB}", project.run, next(nodes))
    )
    return whole - bare


def _python(project: Project, code: str, *arguments: str) -> None:
    command = [sys.executable, "-c", code, *arguments]
    subprocess.run(command, cwd=project.root, capture_output=True, check=True)


def table(rows: Sequence[Row]) -> Table:
    """A line for each run."""
    titles = ["proposals", "events", "fold", "events/s", "first plan", "plan", "plan, wall", "job"]
    return Table("Growth", _NOTE, titles, [_line(row) for row in rows])


def _line(row: Row) -> list[str]:
    seconds = ("first_plan_s", "plan_s", "plan_wall_s", "job_s")
    return [
        f"{row['proposals']:,}",
        f"{row['events']:,}",
        number(row["fold_s"]),
        number(row["events"] / row["fold_s"]),
        *(number(row[name]) for name in seconds),
    ]

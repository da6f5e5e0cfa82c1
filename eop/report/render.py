"""The edge: read the project, build the view, and give text, data or the page."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from io import StringIO
from typing import TYPE_CHECKING, Any

from eop.core.files import write_text
from eop.functions.order_notes import order_notes
from eop.leaderboard.anchors import read_anchors
from eop.leaderboard.rows import rows
from eop.project.project import Project
from eop.report.console import console
from eop.report.doing import doing_json
from eop.report.figure_files import write_run_figures
from eop.report.gains import print_gains
from eop.report.live import print_live, print_status
from eop.report.summary import print_summaries
from eop.report.terminal import WIDE, print_leaderboard
from eop.report.view import at_work, view
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from eop.functions.training_progress import TrainingProgress
    from eop.leaderboard.selection import Selection
    from eop.leaderboard.summary import Summary
    from eop.leaderboard.transfer import Claim, Gain
    from eop.patterns.progress import PhaseProgress
    from eop.protocol.model import Plan
    from eop.report.view import AtWork, RunView
    from eop.runtime.advance import Position

    Progress = Mapping[str, PhaseProgress | TrainingProgress]


def leaderboard_json(root: Path, selection: Selection | None = None) -> dict[str, Any]:
    """``{schema, rows}``: the rows of ``eop.leaderboard.rows``; missing is ``null``."""
    frame = rows(root, selection).astype(object)
    records = frame.where(frame.notna(), None).to_dict("records")
    return {"schema": "leaderboard/1", "rows": records}


def leaderboard_csv(root: Path, selection: Selection | None = None) -> str:
    """The same rows as CSV: missing is empty, a list's items stand apart by spaces."""
    frame = rows(root, selection)
    listed = frame.assign(stands_on=[" ".join(names) for names in frame["stands_on"]])
    return listed.to_csv(index=False, lineterminator="\n")


def leaderboard_text(root: Path, selection: Selection | None = None) -> str:
    """The leaderboard as wide as the terminal; without one, as wide as its content."""
    frame = rows(root, selection)
    anchors = read_anchors(root)
    return _text(lambda console: print_leaderboard(console, frame, anchors))


def gains_text(found: Sequence[Gain], claims: dict[str, Claim]) -> str:
    """What recipes gain on each data set, and the claims on data sets that none was measured on."""
    return _text(lambda console: print_gains(console, found, claims))


def summary_text(found: Sequence[Summary]) -> str:
    """What each run came to as a whole."""
    return _text(lambda console: print_summaries(console, found))


def status_json(project: Project, position: Position, seen: Progress) -> dict[str, Any]:
    """``{schema, ...}``: the run's view as data, what is at work, the gates that wait.

    ``seen`` has what nodes at work do, by key.
    """
    shown, working = _view(project), working_nodes(project, seen)
    return {
        "schema": "status/1",
        **asdict(shown),
        "at_work": [doing_json(node) for node in working],
        "waiting": [asdict(gate) for gate in shown.waiting],
        "problems": _problems(project, position),
    }


def status_text(project: Project, position: Position, seen: Progress) -> str:
    """Where a run stands, for people; each command that opens a gate has a line of its own."""
    shown, working = _view(project), working_nodes(project, seen)
    problems = _problems(project, position)
    return _text(lambda console: print_status(console, shown, working, problems))


def live_text(project: Project, seen: Progress) -> str:
    """The run as it is watched; ``seen`` has what nodes at work do, by key."""
    shown, working = _view(project), working_nodes(project, seen)
    return _text(lambda console: print_live(console, shown, working))


def working_nodes(project: Project, seen: Progress) -> tuple[AtWork, ...]:
    """The nodes at work, with what is ``seen`` of them."""
    trace = Trace(project.trace_dir, project.plan)
    return at_work(project.plan, trace.state(), trace.events(), seen)


def write_report(root: Path, run: str) -> Path:
    """Write ``runs/<run>/report.html``, one file that needs nothing else, and return its path."""
    project = Project.of_run(root, run)
    path = project.run_dir / "report.html"
    write_text(path, page_text(project))
    return path


def write_pages(root: Path, run: str, published: bool) -> list[tuple[str, int | None]]:
    """Write what ``snakemake --report`` shows of a run beside its outcomes; the paths are given.

    Each iteration has a page. The page of the whole run (``None``) is among them only where no
    rule makes it: where something was ``published``, it and the figures are brought up to date.
    """
    from eop.report.iteration_page import iteration_page
    from eop.report.material import read_material
    from eop.report.page import page

    project = Project.of_run(root, run)
    material = read_material(project)
    folder = project.run_dir / "pages"
    texts: dict[Path, tuple[str, int | None]] = {
        folder / f"it{one.number:02d}.html": (iteration_page(material, one.number), one.number)
        for one in material.view.iterations
    }
    if published:
        write_text(project.run_dir / "report.html", page(material))
        write_run_figures(root, run)
    else:
        texts[folder / "run.html"] = (page(material), None)
    for path, (text, _) in texts.items():
        write_text(path, text)
    return [(project.relative(path), iteration) for path, (_, iteration) in texts.items()]


def page_text(project: Project, version: str | None = None) -> str:
    """The page of a run as it is now; with a ``version`` it asks its server for a newer one."""
    # The chart library takes half a second to load, and no other report needs it.
    from eop.report.material import read_material
    from eop.report.page import page

    return page(read_material(project), version)


def graph_text(plan: Plan, form: str, project: Project | None = None) -> str:
    """A protocol as ``mermaid`` or ``svg``; with a ``project``, how far its run has come."""
    # Graphs and templates take a third of a second to load, and no status needs them.
    from eop.report.protocol_graph import graph_mermaid, graph_svg

    draw = {"mermaid": graph_mermaid, "svg": graph_svg}[form]
    return draw(plan, _view(project) if project else None)


def _view(project: Project) -> RunView:
    trace = Trace(project.trace_dir, project.plan)
    return view(project.plan, trace.state(), trace.events())


def _problems(project: Project, position: Position) -> list[str]:
    """What to know of answers: those that decide nothing, and those that say too much."""
    of_gates = [problem for gate in position.waiting for problem in gate.problems]
    return [*of_gates, *order_notes(project, position.state)]


def _text(show: Callable[[Console], None]) -> str:
    # The console that is printed to decides on colour, not the one that makes the text.
    is_terminal = console().is_terminal
    width, height = shutil.get_terminal_size((80 if is_terminal else WIDE, 24))
    made = console(file=StringIO(), width=width, height=height, force_terminal=is_terminal)
    with made.capture() as capture:
        show(made)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())

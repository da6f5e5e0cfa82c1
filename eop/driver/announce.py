"""The last words of a call: what the run waits for and how to answer, or how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.agents.jail import Isolation, Level, detect
from eop.functions.order_notes import order_notes
from eop.runtime.answers import commands

if TYPE_CHECKING:
    from eop.project.project import Project
    from eop.runtime.advance import Position
    from eop.runtime.answers import GateView


def closing_lines(project: Project, position: Position) -> list[str]:
    """A block of text per gate that waits, one when the run is paused or has ended.

    Before them a line for each answer that could not be taken as it was written.
    """
    lines = [f"NOTE: {note}" for note in order_notes(project, position.state)]
    lines += [_gate(project, gate) for gate in position.waiting]
    halt = position.state.halt
    if halt and not position.ended:
        lines.append(
            f"RUN PAUSED\n  {halt}\n  to go on  eop resume --run {project.run}, then run the same "
            "command again"
        )
    if position.ended:
        lines.append(_end(project, position.ended))
    return lines


def onward_lines(project: Project, position: Position) -> list[str]:
    """After the last job of a call: that more may run now, known only since its jobs have run."""
    phases = {phase.id for phase in project.plan.phases}
    nodes = [node for node in position.frontier.instances if node.step in phases]
    ready = [node for node in nodes if position.state.node(node) is None]
    if position.waiting or position.ended or not ready:
        return []
    return [f"THE RUN GOES ON: {len(ready)} more may run now; run the same command again."]


def _gate(project: Project, gate: GateView) -> str:
    name = gate.instance.step
    files = project.relative(gate.approve), project.relative(gate.reject)
    yes, no = commands(project.run, name, *files, signed=gate.signed)
    how = "Text in the file is kept as the reason."
    if gate.signed:
        how = "Only a signed answer counts; the page says how to sign by hand."
    lines = [
        f"GATE CLOSED: {name} (iteration {gate.instance.iteration})",
        f"  read  {project.relative(gate.request)}",
        f"  yes   {yes}",
        f"  no    {no}",
        f"  then run the same command again. {how}",
    ]
    notes = [*gate.problems, *([] if gate.signed else _unguarded(project))]
    return "\n".join([*lines, *(f"  note  {note}" for note in notes)])


def _unguarded(project: Project) -> list[str]:
    """What a person must know where only the jail keeps agents from answering for them."""
    if project.config.isolation != Isolation.OFF and detect() is not Level.NONE:
        return []
    return [
        "agents of this run work without a jail and could make this file themselves: see who "
        "owns it, or let people sign (docs/howto/gates.md)"
    ]


def _end(project: Project, reason: str) -> str:
    lines = [f"RUN ENDED: {reason}"]
    if reason not in ("completed", "rejected"):
        lines.append(f"  why          eop status --run {project.run}")
    report = project.run_dir / "report.html"
    if report.is_file():
        lines.append(f"  report       {project.relative(report)}")
    lines.append("  leaderboard  eop leaderboard")
    if not project.config.commit:
        lines.append("  keep it      git add leaderboard knowledge data && git commit")
    return "\n".join(lines)

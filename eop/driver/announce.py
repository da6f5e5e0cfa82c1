"""The last words of a call: what the run waits for and how to answer, or how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eop.project.project import Project
    from eop.runtime.advance import GateView, Position


def closing_lines(project: Project, position: Position) -> list[str]:
    """One block of text per gate that waits, and one when the run has ended or goes on."""
    lines = [_gate(project, gate) for gate in position.waiting]
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
    title = f"GATE CLOSED: {gate.instance.step} (iteration {gate.instance.iteration})"
    lines = [
        title,
        f"  read  {project.relative(gate.request)}",
        f"  yes   touch {project.relative(gate.approve)}",
        f"  no    touch {project.relative(gate.reject)}",
        "  then run the same command again. Text in the file is kept as the reason.",
    ]
    lines += [f"  note  {problem}" for problem in gate.problems]
    return "\n".join(lines)


def _end(project: Project, reason: str) -> str:
    lines = [f"RUN ENDED: {reason}"]
    if reason not in ("completed", "rejected"):
        lines.append("  why          eop status")
    report = project.run_dir / "report.html"
    if report.is_file():
        lines.append(f"  report       {project.relative(report)}")
    lines.append("  leaderboard  eop leaderboard")
    if not project.config.commit:
        lines.append("  keep it      git add leaderboard knowledge data && git commit")
    return "\n".join(lines)

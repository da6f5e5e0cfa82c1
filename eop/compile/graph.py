"""The whole protocol as a graph: what Snakemake's own graphs show only up to a gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.protocol.model import Gate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.protocol.model import Phase, Plan

NEEDS, REJECTED, BACK, LOOP = "needs", "rejected", "back", "loop"
# How Mermaid draws a way back; a need is a plain arrow.
_ARROWS = {REJECTED: "-. {label} .->", BACK: "-. {label} .->", LOOP: "== {label} ==>"}
# Fills that are read on light and on dark paper, each with ink of its own.
_FILLS = {"good": "#cfeadb", "bad": "#f6d5d0", "warn": "#fbe6b8", "calm": "#d5e3f6"}


@dataclass(frozen=True)
class Edge:
    """From a step to one that comes after it, or a way back; ``label`` says when and how often."""

    source: str
    target: str
    kind: str
    label: str = ""


def edges(plan: Plan) -> list[Edge]:
    """Every arrow of a protocol: what needs what, in document order, then the ways back."""
    found = [Edge(needed, name, NEEDS) for name in plan.steps for needed in plan.requirements(name)]
    for gate in plan.gates:
        if gate.on_reject.goto:
            times = f"no, at most {_times(gate.on_reject.max)}"
            found.append(Edge(gate.id, gate.on_reject.goto, REJECTED, times))
    for phase in plan.phases:
        if phase.back:
            times = f"back, at most {_times(phase.back.max)}"
            found.append(Edge(phase.id, phase.back.to, BACK, times))
    if plan.loop:
        turns = f"at most {plan.loop.max} iterations"
        found += [Edge(name, plan.loop.goto, LOOP, turns) for name in plan.loop.after]
    return found


def mermaid(plan: Plan, marks: Mapping[str, str] | None = None) -> str:
    """Mermaid text of ``plan``: gates are hexagons, phases of a branch have double sides.

    ``marks`` colours steps by name: good, bad, warn or calm.
    """
    lines = ["flowchart LR"]
    lines += [f"    {_node(step)}" for step in plan.steps.values()]
    for edge in edges(plan):
        arrow = _ARROWS.get(edge.kind, "-->").format(label=edge.label)
        lines.append(f"    {edge.source} {arrow} {edge.target}")
    for kind, fill in _FILLS.items():
        names = [name for name in plan.steps if (marks or {}).get(name) == kind]
        if names:
            lines.append(f"    classDef {kind} fill:{fill},color:#1d2126,stroke:#8a929b")
            lines.append(f"    class {','.join(names)} {kind}")
    return "\n".join(lines) + "\n"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _node(step: Phase | Gate) -> str:
    label = step.id.replace("_", " ")
    if isinstance(step, Gate):
        return f"{step.id}{{{{{label}}}}}"
    return f"{step.id}[[{label}]]" if step.branch else f"{step.id}[{label}]"

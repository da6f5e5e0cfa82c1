"""The whole protocol as a Mermaid graph: what Snakemake's own graphs show only up to a gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.protocol.model import Gate

if TYPE_CHECKING:
    from eop.protocol.model import Phase, Plan


def mermaid(plan: Plan) -> str:
    """Mermaid text of ``plan``: gates are hexagons, phases of a branch have double sides."""
    lines = ["flowchart LR"]
    lines += [f"    {_node(step)}" for step in plan.steps.values()]
    for name in plan.steps:
        lines += [f"    {needed} --> {name}" for needed in plan.requirements(name)]
    for gate in plan.gates:
        if gate.on_reject.goto:
            lines.append(f"    {gate.id} -. no .-> {gate.on_reject.goto}")
    if plan.loop:
        turns = f"at most {plan.loop.max} iterations"
        lines += [f"    {name} == {turns} ==> {plan.loop.goto}" for name in plan.loop.after]
    return "\n".join(lines) + "\n"


def _node(step: Phase | Gate) -> str:
    label = step.id.replace("_", " ")
    if isinstance(step, Gate):
        return f"{step.id}{{{{{label}}}}}"
    return f"{step.id}[[{label}]]" if step.branch else f"{step.id}[{label}]"

"""Control flow: no cycles, gates that hold, loops and rejections that go back and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.protocol.dominators import dominating_gates

if TYPE_CHECKING:
    from eop.protocol.diagnostics import Report, Span
    from eop.protocol.draft import Draft, Placed
    from eop.protocol.graph import Graph
    from eop.protocol.model import Gate, Loop, Phase


def check_flow(draft: Draft, graph: Graph, report: Report) -> None:
    """Check cycles, gates and the loop."""
    _cycles(draft, graph, report)
    bypassed = _gates_guard(draft, graph, report)
    idle = _idle_gates(draft)
    _gates_hold(draft, idle - bypassed, report)
    _late_starts(draft, graph, report)
    for extra in draft.loops[1:]:
        hint = f"the first one is on line {draft.loops[0].name.line}"
        report.error("EOP405", "a protocol has at most one loop", extra.name, hint)
    body: frozenset[str] = frozenset()
    if draft.loops and not draft.loops[0].doubtful:
        body = graph.below([draft.loops[0].value.goto])
        _loop(draft.loops[0], body - bypassed, draft, graph, report)
    for gate in draft.gates:
        goto = gate.value.on_reject.goto
        if goto is not None:
            _goes_back(gate, goto, gate.node.at("on_reject", "goto"), body, graph, report)
    for phase in draft.phases:
        if phase.value.back is not None:
            span = phase.node.at("goto", "to")
            _goes_back(phase, phase.value.back.to, span, body, graph, report)


def _cycles(draft: Draft, graph: Graph, report: Report) -> None:
    steps = {step.value.id: step for step in draft.steps}
    for cycle in graph.cycles():
        step, required = steps[cycle[0]], [*cycle, cycle[0]][1]
        key = "needs" if "needs" in step.node.keys else "after"
        words = getattr(step.node.values.get(key), "items", ())
        spans = [word.span for word in words if getattr(word, "value", None) == required]
        report.error(
            "EOP401",
            "a step would wait for itself: " + " -> ".join([*cycle, cycle[0]]),
            spans[0] if spans else step.name,
            "within an iteration dependencies only point back; to repeat steps use a loop",
        )


def _gates_guard(draft: Draft, graph: Graph, report: Report) -> frozenset[str]:
    """Whatever builds on what a gate shows must come after that gate; the gates bypassed."""
    bypassed = set()
    producers = {out.name: p.value.id for p in draft.phases for out in p.value.outputs}
    phases = {phase.value.id: phase for phase in draft.phases}
    dominating = dominating_gates(draft, graph)
    for gate in draft.gates:
        before = graph.ancestors(gate.value.id)
        shown = {producers[name]: name for name in gate.value.shows if name in producers}
        slips: dict[str, str] = {}
        for name in phases:
            above = graph.ancestors(name)
            used = next((a for p, a in shown.items() if p in above and p in before), None)
            if used and name not in before and gate.value.id not in dominating[name]:
                slips[name] = used
        for name, artifact in slips.items():
            if name in graph.doubtful or slips.keys() & set(graph.requires[name]):
                continue
            message = (
                f"'{name}' builds on '{artifact}' but can run before the gate '{gate.value.id}'"
            )
            hint = f"add '{gate.value.id}' to its needs"
            report.error("EOP402", message, phases[name].name, hint)
            bypassed.add(gate.value.id)
    return frozenset(bypassed)


def _idle_gates(draft: Draft) -> frozenset[str]:
    """Gates that nothing waits for; none where that cannot be told."""
    if draft.broken or any(step.doubtful for step in draft.all_steps):
        return frozenset()
    waited = {name for phase in draft.phases for name in phase.value.needs}
    waited |= {name for gate in draft.gates for name in gate.value.after}
    waited |= {name for loop in draft.loops for name in loop.value.after}
    return frozenset(gate.value.id for gate in draft.gates) - waited


def _gates_hold(draft: Draft, idle: frozenset[str], report: Report) -> None:
    """A gate in the middle of the document must be waited for; the last one may end the run."""
    last = max((step.value.line for step in draft.steps), default=0)
    for gate in draft.gates:
        if gate.value.id in idle and gate.value.line < last:
            message = f"nothing waits for the gate '{gate.value.id}'"
            report.error("EOP403", message, gate.name, "add it to the needs of what follows")


def _late_starts(draft: Draft, graph: Graph, report: Report) -> None:
    """People read a gate as holding back what is written below it."""
    first = min((gate.value.line for gate in draft.gates), default=None)
    for phase in draft.phases:
        starts = not graph.requires[phase.value.id] and phase.value.id not in graph.doubtful
        if first is not None and phase.value.line > first and starts:
            message = f"'{phase.value.id}' is written below a gate but waits for nothing"
            hint = "add needs, or move it above the first gate"
            report.error("EOP417", message, phase.name, hint)


def _loop(
    loop: Placed[Loop], awaited: frozenset[str], draft: Draft, graph: Graph, report: Report
) -> None:
    """The loop goes back, and ``awaited``, its body, is done before it does."""
    value = loop.value
    done = graph.ancestors(*value.after) | set(value.after)
    if value.goto not in done:
        if not graph.doubtful & set(value.after):
            message = f"'{value.goto}' does not come before {', '.join(value.after)}"
            hint = "a loop goes back: its goto is a step that 'after' depends on"
            report.error("EOP404", message, loop.node.at("goto"), hint)
        return
    late = awaited - done
    steps = {step.value.id: step for step in draft.steps}
    branches = {phase.value.id for phase in draft.phases if phase.value.branch}
    for name in late - graph.doubtful - branches:
        if not late & set(graph.requires[name]):
            message = f"the loop '{value.id}' does not wait for '{name}'"
            hint = f"add '{name}' to the loop's after"
            report.error("EOP406", message, steps[name].name, hint)


def _goes_back(
    step: Placed[Gate] | Placed[Phase],
    goto: str,
    span: Span,
    body: frozenset[str],
    graph: Graph,
    report: Report,
) -> None:
    name = step.value.id
    if name in graph.doubtful:
        return
    if goto not in graph.ancestors(name):
        message = f"'{goto}' does not come before '{name}'"
        hint = f"its goto is a step that '{name}' depends on"
        report.error("EOP404", message, span, hint)
    elif name in body and goto not in body:
        message = f"'{goto}' lies outside the loop that '{name}' is in"
        report.error("EOP407", message, span, "go back to a step that every turn runs")

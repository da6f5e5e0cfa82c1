"""Fan-out and fan-in: one head, members below it, and a join for whoever waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eop.protocol.diagnostics import Report
    from eop.protocol.draft import Draft, Placed
    from eop.protocol.graph import Graph
    from eop.protocol.model import Phase


def check_branches(draft: Draft, graph: Graph, report: Report) -> None:
    """Check the fan-out, its members, and every edge that leaves the branches."""
    heads = [phase for phase in draft.phases if phase.value.fan_out]
    for extra in heads[1:]:
        hint = f"the first one is '{heads[0].value.id}' on line {heads[0].name.line}"
        span = extra.node.at("for_each")
        report.error("EOP408", "a protocol opens branches at most once", span, hint)
    branches = frozenset(phase.value.id for phase in draft.phases if phase.value.branch)
    strays = _strays(heads[0], branches, graph) if heads else frozenset()
    for phase in draft.phases:
        name = phase.value.id
        if heads and name in strays and not strays & set(graph.requires[name]):
            opener = heads[0].value.id
            message = f"'{name}' runs once per '{phase.value.branch}' but not after '{opener}'"
            hint = f"add '{opener}', or a phase after it, to its needs"
            report.error("EOP409", message, phase.node.at("for_each"), hint)
    _edges(draft, branches, report)
    _can_fire(draft, report)
    if not strays:
        _joined(draft, branches, graph, report)


def _strays(head: Placed[Phase], branches: frozenset[str], graph: Graph) -> frozenset[str]:
    """Branch phases that could run before their branch is opened."""
    opener = head.value.id
    return branches - graph.doubtful - graph.below([opener])


def _edges(draft: Draft, branches: frozenset[str], report: Report) -> None:
    """Only branch phases and joins may depend on branch phases."""
    for phase in draft.phases:
        if not phase.value.branch:
            _crossing(phase, "needs", phase.value.needs, branches, report)
    for gate in draft.gates:
        _crossing(gate, "after", gate.value.after, branches, report)
    for loop in draft.loops:
        _crossing(loop, "after", loop.value.after, branches, report)
    for gate in draft.gates:
        goto = gate.value.on_reject.goto
        if goto in branches:
            span = gate.node.at("on_reject", "goto")
            message = f"a rejection cannot go back into the branches ('{goto}')"
            report.error("EOP410", message, span, "go back to a phase before the fan-out")
    for loop in draft.loops:
        if loop.value.goto in branches:
            message = f"a loop cannot go back into the branches ('{loop.value.goto}')"
            span = loop.node.at("goto")
            report.error("EOP410", message, span, "go back to a phase before the fan-out")


def _crossing(
    step: Placed[Any], key: str, words: tuple[str, ...], branches: frozenset[str], report: Report
) -> None:
    for word in words:
        if word in branches:
            message = f"'{step.value.id}' is not in a branch and cannot wait for '{word}', which is"
            hint = "let a phase with 'join: {of: ..., wait: all}' collect the branches first"
            report.error("EOP410", message, step.node.at(key), hint)


def _can_fire(draft: Draft, report: Report) -> None:
    most = draft.most_branches
    for phase in draft.phases:
        least = phase.value.join.at_least if phase.value.join else 0
        if most is not None and least > most:
            message = f"at_least {least} can never be met: there are at most {most} branches"
            span = phase.node.at("join", "at_least")
            report.error("EOP415", message, span, f"write at most {most}")


def _joined(draft: Draft, branches: frozenset[str], graph: Graph, report: Report) -> None:
    """Every branch phase must be waited for: a join says what failed branches do."""
    if draft.broken or any(phase.doubtful for phase in draft.phases):
        return
    ends = {phase.value.join.of for phase in draft.phases if phase.value.join}
    awaited = ends | graph.ancestors(*ends)
    for phase in draft.phases:
        name = phase.value.id
        later = graph.below([name]) - {name}
        if name in branches and name not in awaited and not later & branches:
            message = f"no join waits for '{name}'"
            hint = "add a phase with 'join: {of: " + name + ", wait: all, at_least: 0}'"
            report.error("EOP412", message, phase.name, hint)

"""Fan-outs and fan-ins: one head per item, members below it, a join for whoever waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.protocol.model import ANY

if TYPE_CHECKING:
    from eop.protocol.diagnostics import Report
    from eop.protocol.draft import Draft, Placed
    from eop.protocol.graph import Graph
    from eop.protocol.model import Phase

# Step name to the item whose branches it runs in.
_Branches = dict[str, str]


def check_branches(draft: Draft, graph: Graph, report: Report) -> None:
    """Check every fan-out, its members, and every edge that leaves its branches."""
    heads = draft.heads
    _one_head_each(draft, report)
    branches = {p.value.id: p.value.branch for p in draft.phases if p.value.branch}
    strays: set[str] = set()
    for item, head in heads.items():
        members = {name for name, of in branches.items() if of == item}
        found = members - graph.doubtful - graph.below([head.value.id])
        strays |= found
        _outside(head, found, draft, graph, report)
        _loop(head, members, draft, graph, report)
    _edges(draft, branches, report)
    _can_fire(draft, report)
    _cut_offs(draft, report)
    if not strays:
        _joined(draft, branches, graph, report)


def _one_head_each(draft: Draft, report: Report) -> None:
    for phase in draft.phases:
        opened = phase.value.fan_out
        first = draft.heads[opened.item] if opened else phase
        if opened and first is not phase:
            message = f"the branches of '{opened.item}' are opened by '{first.value.id}' already"
            hint = f"'{first.value.id}' is on line {first.name.line}; give this item another name"
            report.error("EOP430", message, phase.node.at("for_each"), hint)


def _outside(
    head: Placed[Phase], strays: set[str], draft: Draft, graph: Graph, report: Report
) -> None:
    """Members that could run before their branch is opened."""
    opener = head.value.id
    for phase in draft.phases:
        name = phase.value.id
        if name in strays and not strays & set(graph.requires[name]):
            message = f"'{name}' runs once per '{phase.value.branch}' but not after '{opener}'"
            hint = f"add '{opener}', or a phase after it, to its needs"
            report.error("EOP409", message, phase.node.at("for_each"), hint)


def _loop(
    head: Placed[Phase], members: set[str], draft: Draft, graph: Graph, report: Report
) -> None:
    """A turn of the loop runs all phases of a branch or none: others would wait for ever."""
    for loop in draft.loops:
        body = graph.below([loop.value.goto])
        inside = members & body
        if inside and head.value.id not in body and not graph.doubtful & members:
            first = next(name for name in graph.requires if name in inside)
            message = f"the loop runs '{first}' again, but not '{head.value.id}', which opens it"
            hint = f"let the loop go back to a step before '{head.value.id}'"
            report.error("EOP432", message, loop.node.at("goto"), hint)


def _edges(draft: Draft, branches: _Branches, report: Report) -> None:
    """Only phases of the same fan-out, and joins, may depend on branch phases."""
    for phase in draft.phases:
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
    for phase in draft.phases:
        _sent_back(phase, branches, report)
    for loop in draft.loops:
        if loop.value.goto in branches:
            message = f"a loop cannot go back into the branches ('{loop.value.goto}')"
            span = loop.node.at("goto")
            report.error("EOP410", message, span, "go back to a phase before the fan-out")


def _sent_back(phase: Placed[Phase], branches: _Branches, report: Report) -> None:
    """A revision is of a step in all branches: one of them cannot go back alone."""
    back = phase.value.back
    if back is None:
        return
    if phase.value.branch:
        message = "a branch cannot go back by itself"
        hint = "put the goto on the phase that joins the branches"
        report.error("EOP418", message, phase.node.key("goto"), hint)
    elif back.to in branches:
        message = f"a goto cannot go back into the branches ('{back.to}')"
        hint = "go back to a phase before the fan-out"
        report.error("EOP418", message, phase.node.at("goto", "to"), hint)


def _crossing(
    step: Placed[Any], key: str, words: tuple[str, ...], branches: _Branches, report: Report
) -> None:
    name = step.value.id
    own = branches.get(name)
    for index, word in enumerate(words):
        other = branches.get(word)
        if other is None or other == own:
            continue
        span = step.node.at(key, index)
        hint = "let a phase with 'join: {of: ..., wait: all}' collect the branches first"
        if own is None:
            message = f"'{name}' is not in a branch and cannot wait for '{word}', which is"
            report.error("EOP410", message, step.node.at(key), hint)
        elif step.value.fan_out:
            message = f"'{name}' would open branches inside a branch: '{word}' runs per '{other}'"
            report.error("EOP431", message, span, hint)
        else:
            message = f"'{name}' runs per '{own}' and cannot wait for '{word}', run per '{other}'"
            report.error("EOP410", message, span, hint)


def _can_fire(draft: Draft, report: Report) -> None:
    for phase in draft.phases:
        join = phase.value.join
        most = draft.most_branches(draft.branch_of(join.of)) if join else None
        if join and most is not None and join.at_least > most:
            message = (
                f"at_least {join.at_least} can never be met: there are at most {most} branches"
            )
            span = phase.node.at("join", "at_least")
            report.error("EOP415", message, span, f"write at most {most}")


def _cut_offs(draft: Draft, report: Report) -> None:
    """A join that cuts branches off is the only one over them: another would miss them."""
    joined: dict[str | None, list[Placed[Phase]]] = {}
    for phase in draft.phases:
        if phase.value.join:
            joined.setdefault(draft.branch_of(phase.value.join.of), []).append(phase)
    for item, phases in joined.items():
        cutting = [p for p in phases if p.value.join and p.value.join.wait == ANY]
        if item is None or not cutting or len(phases) == 1:
            continue
        other = next(p for p in phases if p is not cutting[0])
        message = f"it cuts off branches of '{item}' that '{other.value.id}' waits for"
        hint = "write wait: all, or let one phase join these branches"
        report.error("EOP433", message, cutting[0].node.at("join", "wait"), hint)


def _joined(draft: Draft, branches: _Branches, graph: Graph, report: Report) -> None:
    """Every branch phase must be waited for: a join says what failed branches do."""
    if draft.broken or any(phase.doubtful for phase in draft.phases):
        return
    ends = {phase.value.join.of for phase in draft.phases if phase.value.join}
    awaited = ends | graph.ancestors(*ends)
    for phase in draft.phases:
        name = phase.value.id
        later = {step for step in graph.below([name]) if branches.get(step) == branches.get(name)}
        if name in branches and name not in awaited and later == {name}:
            message = f"no join waits for '{name}'"
            hint = "add a phase with 'join: {of: " + name + ", wait: all, at_least: 0}'"
            report.error("EOP412", message, phase.name, hint)

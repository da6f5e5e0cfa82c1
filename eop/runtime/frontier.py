"""What may run: one node now (``enabled``), or everything that one Snakemake call can reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eop.protocol.model import Gate, Phase, Plan
from eop.runtime.budgets import shortfall
from eop.runtime.decisions import goes_back, guarded_out
from eop.runtime.gates import APPROVED, SKIPPED
from eop.runtime.joins import CUT_OFF, cut_off, join_failure
from eop.runtime.node import Instance
from eop.runtime.state import OPEN, State

Kind = Literal["run", "done", "skip", "budget", "wait", "refused"]


@dataclass(frozen=True)
class Verdict:
    """Whether a node may be entered now.

    ``run``: yes. ``done``: it has left for good. ``skip``: it never will, and is recorded as
    skipped. ``budget``: the run's budget cannot carry it. ``wait``: not before something else
    has happened. ``refused``: not in this run's present state at all. ``excused``: it is skipped
    because of a guard, its own or another's.
    """

    kind: Kind
    reason: str = ""
    excused: bool = False


@dataclass(frozen=True)
class Frontier:
    """All that has run or may run in one Snakemake call, in an order that respects needs.

    ``instances`` are phases and open gates of this iteration, in the newest revision;
    ``earlier`` the nodes that have left before these. ``closed_gates`` are the gates where it
    stops; ``reason`` says in words why it does.
    """

    instances: tuple[Instance, ...]
    earlier: tuple[Instance, ...]
    closed_gates: tuple[Instance, ...]
    reason: str


def enabled(plan: Plan, state: State, instance: Instance) -> Verdict:
    """Whether ``instance`` may be entered in ``state``."""
    node = state.node(instance)
    if node is not None and node.final:
        return Verdict("done", node.reason)
    problem = _misfit(plan, state, instance)
    if problem:
        return Verdict("refused", problem)
    if node is not None and node.status == OPEN:
        return Verdict("wait", f"attempt {node.attempt} of {instance.key} is open")
    if state.halt:
        return Verdict("wait", str(state.halt))
    phase = plan.phase(instance.step)
    unmet = waits_for(plan, state, instance)
    if unmet:
        return Verdict("wait", unmet)
    hopeless = _hopeless(plan, state, instance, phase)
    if hopeless is not None:
        return hopeless
    guard = guarded_out(plan, state, instance)
    if guard:
        return Verdict("skip", guard, excused=True)
    short = shortfall(plan, state, phase)
    return Verdict("budget", short) if short else Verdict("run")


def _misfit(plan: Plan, state: State, instance: Instance) -> str | None:
    """Why this name is no node of the run as it stands; ``None`` when it is."""
    if state.ended:
        return f"the run has ended: {state.ended}"
    if not isinstance(plan.steps.get(instance.step), Phase):
        return f"the plan has no phase '{instance.step}'"
    if instance.iteration != state.iteration:
        return f"iteration {instance.iteration} is not the current one ({state.iteration})"
    if instance.step not in members(plan, state.iteration):
        return f"{instance.step} runs in the first iteration only"
    if not state.is_current(instance):
        newest = state.current(instance.step, instance.iteration, instance.branch)
        return f"{instance.key} is not the newest revision, {newest.key} is"
    item = plan.phase(instance.step).branch
    if item is None:
        return f"{instance.step} runs outside branches" if instance.branch else None
    branches = state.branches.get((instance.iteration, item), {})
    return None if instance.branch in branches else f"{instance.key} is in no open branch"


def members(plan: Plan, iteration: int) -> frozenset[str]:
    """Steps that an iteration runs: all in the first, the loop's body later."""
    return plan.names if iteration == 1 else plan.body


def resolve(plan: Plan, state: State, instance: Instance, step: str) -> tuple[Instance, ...]:
    """The instances of ``step`` that ``instance`` builds on.

    Inside a branch, the same branch's; from outside, every open branch's. A step outside the
    loop's body is that of the first iteration.
    """
    home = state.home(plan, step, instance.iteration)
    required = plan.steps[step]
    if isinstance(required, Gate) or required.branch is None:
        return (state.current(step, home),)
    if instance.branch is not None:
        return (state.current(step, home, instance.branch),)
    branches = state.branches.get((home, required.branch), {})
    return tuple(state.current(step, home, name) for name in sorted(branches))


def dependencies(plan: Plan, state: State, instance: Instance) -> tuple[Instance, ...]:
    """The instances, of phases and of gates, that ``instance`` directly needs."""
    return tuple(
        needed
        for step in plan.requirements(instance.step)
        for needed in resolve(plan, state, instance, step)
    )


def waits_for(plan: Plan, state: State, instance: Instance) -> str | None:
    """What a step still waits for: a closed gate, unknown branches, a phase that has not left."""
    for step in plan.requirements(instance.step):
        required = plan.steps[step]
        home = state.home(plan, step, instance.iteration)
        item = required.branch if isinstance(required, Phase) else None
        unopened = item and (home, item) not in state.branches
        if item and unopened and not never_opens(plan, state, item, home):
            return f"the branches of '{item}' in iteration {home} are not open yet"
        for needed in resolve(plan, state, instance, step):
            if isinstance(required, Gate):
                if not is_answered(state, needed):
                    return f"gate {needed.key} is closed"
            elif not has_left(state, needed):
                return f"{needed.key} has not left yet"
            elif required.back and goes_back(plan, state, needed):
                return f"{needed.key} sends the run back first"
    return None


def blocked(plan: Plan, state: State, instance: Instance) -> Verdict | None:
    """The skip of a step that waits for nothing and one of whose requirements is not met.

    What its own branches have come to is not looked at.
    """
    for step in plan.requirements(instance.step):
        required = plan.steps[step]
        if isinstance(required, Phase) and required.branch:
            continue
        [needed] = resolve(plan, state, instance, step)
        if isinstance(required, Gate):
            if not is_approved(state, needed):
                return Verdict("skip", f"gate {needed.key} was not asked", excused=True)
        elif not _passed(plan, state, needed):
            node = state.nodes[needed.key]
            return Verdict("skip", f"{needed.key} ended as {node.status}", node.excused)
    return None


def never_opens(plan: Plan, state: State, item: str, iteration: int) -> str | None:
    """Why the branches of an item will not be opened, guards being what they are."""
    head = next(phase for phase in plan.heads if phase.branch == item)
    opener = state.current(head.id, iteration)
    verdict = None if waits_for(plan, state, opener) else blocked(plan, state, opener)
    if verdict and verdict.excused:
        return verdict.reason
    # Its list may come from further back than what it needs, and others go on past an optional one.
    assert head.fan_out is not None
    lists = plan.producer(head.fan_out.artifact).id
    maker = state.current(lists, state.home(plan, lists, iteration))
    node = state.node(maker)
    return f"{maker.key} ended as {node.status}" if node and node.excused else None


def is_answered(state: State, gate: Instance) -> bool:
    """Whether this revision of a gate holds nothing back any more: it is open, or was skipped."""
    known = state.gate(gate)
    return known is not None and known.status in (APPROVED, SKIPPED)


def is_approved(state: State, gate: Instance) -> bool:
    """Whether this revision of a gate is open."""
    known = state.gate(gate)
    return known is not None and known.status == APPROVED


def has_left(state: State, instance: Instance) -> bool:
    """Whether a node has its last outcome, whatever it is."""
    node = state.nodes.get(instance.key)
    return node is not None and node.final


def _passed(plan: Plan, state: State, instance: Instance) -> bool:
    """Whether others may go on after a phase that has left."""
    node = state.nodes.get(instance.key)
    return (node is not None and node.completed) or plan.phase(instance.step).optional


def _excused(state: State, instance: Instance) -> bool:
    node = state.node(instance)
    return node is not None and node.excused


def _hopeless(plan: Plan, state: State, instance: Instance, phase: Phase) -> Verdict | None:
    """The skip of a phase that will never run though all before it has left; else ``None``."""
    verdict = blocked(plan, state, instance)
    if verdict is not None:
        return verdict
    if phase.join:
        return _unjoined(plan, state, instance, phase)
    return _off_path(plan, state, instance, phase) if phase.branch else None


def _unjoined(plan: Plan, state: State, instance: Instance, phase: Phase) -> Verdict | None:
    """The skip of a join that cannot fire; ``None`` when it may."""
    assert phase.join is not None
    home = state.home(plan, phase.join.of, instance.iteration)
    item = plan.phase(phase.join.of).branch
    if item and (home, item) not in state.branches:
        reason = never_opens(plan, state, item, home)
        return Verdict("skip", f"no branches are opened: {reason}", excused=True)
    failure = join_failure(plan, state, phase, instance.iteration)
    return Verdict("skip", failure.reason, failure.excused) if failure else None


def _off_path(plan: Plan, state: State, instance: Instance, phase: Phase) -> Verdict | None:
    """The skip of a phase that does not run in branches that stand as its own does.

    A branch has failed once a phase of it did; where nothing but a guard stopped it, it counts
    as skipped.
    """
    if cut_off(plan, state, instance):
        return Verdict("skip", CUT_OFF)
    lost = _lost(plan, state, instance)
    if not lost:
        fits = "completed" in phase.on_branch
        return None if fits else Verdict("skip", "its branch did not fail")
    failed = [node for node in lost if not _excused(state, node)]
    if ("failed" if failed else "skipped") in phase.on_branch:
        return None
    first = (failed or lost)[0]
    node = state.node(first)
    reason = f"{first.key} ended as {node.status if node else 'never run'}"
    return Verdict("skip", reason, excused=not failed)


def _lost(plan: Plan, state: State, instance: Instance) -> list[Instance]:
    """The nodes of its branch that ``instance`` comes after and that others cannot go on from."""
    lost = []
    for step in plan.branch_path(instance.step):
        before = state.current(step, instance.iteration, instance.branch)
        if not _passed(plan, state, before):
            lost.append(before)
    return sorted(lost, key=lambda node: node.key) if lost else lost


def frontier(plan: Plan, state: State) -> Frontier:
    """What one Snakemake call can reach: up to closed gates, unknown fan-outs, the loop's turn."""
    inside: list[Instance] = []
    closed: list[Instance] = []
    reachable: set[str] = set()
    unknown: list[str] = []
    turning: list[str] = []
    for step in _in_order(plan, members(plan, state.iteration)):
        if not all(_passable(plan, state, need, reachable) for need in plan.requirements(step)):
            continue
        nodes = _instances(plan, state, step)
        if nodes is None:
            unknown.append(step)
        elif isinstance(plan.steps[step], Phase) or is_answered(state, nodes[0]):
            inside.extend(nodes)
            if _goes_on(plan, state, step):
                reachable.add(step)
            else:
                turning.append(step)
        else:
            closed.extend(nodes)
    first = _before_the_branches(plan, reachable, unknown)
    if first is not None:
        inside = [node for node in inside if node.step in first or is_over(plan, state, node)]
    if state.ended or state.halt:
        inside = [node for node in inside if is_over(plan, state, node)]
    if state.ended:
        closed = []
    keys = {node.key for node in inside}
    earlier = [Instance.parse(k) for k, n in state.nodes.items() if n.final and k not in keys]
    reason = _stop_reason(plan, state, closed, unknown, turning)
    return Frontier(tuple(inside), tuple(earlier), tuple(closed), reason)


def _before_the_branches(
    plan: Plan, reachable: set[str], unknown: list[str]
) -> frozenset[str] | None:
    """What leads to a fan-out, when a function is about to list its items; else ``None``.

    Such a list takes seconds, and one Snakemake call cannot run branches that it does not know.
    So all else waits for the next call, in which it runs beside the branches.
    """
    due: set[str] = set()
    for head in plan.heads:
        lists = plan.producer(head.fan_out.artifact) if head.fan_out else None
        if head.id in unknown and lists and lists.function and lists.id in reachable:
            due.add(head.id)
    if not due:
        return None
    return frozenset(step for step in plan.steps if due & plan.descendants(step))


def _in_order(plan: Plan, steps: frozenset[str]) -> list[str]:
    """``steps`` so that each comes after what it requires; else in document order."""
    ordered: list[str] = []
    pending = [name for name in plan.steps if name in steps]
    while pending:
        ready = next(
            (n for n in pending if not set(plan.requirements(n)) & set(pending)), pending[0]
        )
        ordered.append(ready)
        pending.remove(ready)
    return ordered


def _passable(plan: Plan, state: State, step: str, reachable: set[str]) -> bool:
    # The loop turns only when every step of an iteration is over, so what is not of this one is.
    return step in reachable or state.home(plan, step, state.iteration) != state.iteration


def _instances(plan: Plan, state: State, step: str) -> list[Instance] | None:
    """This iteration's instances of a step; ``None`` while its branches are unknown."""
    found = plan.steps[step]
    if isinstance(found, Gate) or found.branch is None:
        return [state.current(step, state.iteration)]
    branches = state.branches.get((state.iteration, found.branch))
    if branches is None:
        return [] if never_opens(plan, state, found.branch, state.iteration) else None
    return [state.current(step, state.iteration, branch) for branch in sorted(branches)]


def _stop_reason(
    plan: Plan, state: State, closed: list[Instance], unknown: list[str], turning: list[str]
) -> str:
    if state.ended:
        return f"the run has ended: {state.ended}"
    if state.halt:
        return str(state.halt)
    if closed:
        return "closed: " + ", ".join(f"gate {gate.key}" for gate in closed)
    if unknown:
        return f"the branches of {unknown[0]} are known only when its list is committed"
    if turning:
        return f"{turning[0]} may send the run back: what follows is known when it has left"
    if plan.loop and state.iteration < plan.loop.max:
        return f"iteration {state.iteration + 1} opens when this one has left"
    return "nothing stops it"


def _goes_on(plan: Plan, state: State, step: str) -> bool:
    """Whether what follows a step is known: a phase with a goto has left and stays left."""
    found = plan.steps[step]
    if isinstance(found, Gate) or found.back is None:
        return True
    return is_over(plan, state, state.current(step, state.iteration))


def everything_left(plan: Plan, state: State) -> bool:
    """Whether every step of this iteration is over: phases have left, gates are open."""
    for step in members(plan, state.iteration):
        nodes = _instances(plan, state, step)
        if nodes is None or not all(is_over(plan, state, node) for node in nodes):
            return False
    return True


def is_over(plan: Plan, state: State, instance: Instance) -> bool:
    """Whether nothing more can happen to it: a phase has left, a gate is open."""
    if isinstance(plan.steps[instance.step], Gate):
        return is_answered(state, instance)
    return has_left(state, instance) and not goes_back(plan, state, instance)

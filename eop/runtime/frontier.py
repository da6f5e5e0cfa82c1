"""What may run: one node now (``enabled``), or everything that one Snakemake call can reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eop.protocol.model import Gate, Phase, Plan
from eop.runtime.budgets import shortfall
from eop.runtime.gates import APPROVED
from eop.runtime.joins import CUT_OFF, cut_off, join_failure
from eop.runtime.node import Instance
from eop.runtime.state import OPEN, State

Kind = Literal["run", "done", "skip", "budget", "wait", "refused"]


@dataclass(frozen=True)
class Verdict:
    """Whether a node may be entered now.

    ``run``: yes. ``done``: it has left for good. ``skip``: it never will, and is recorded as
    skipped. ``budget``: the run's budget cannot carry it. ``wait``: not before something else
    has happened. ``refused``: not in this run's present state at all.
    """

    kind: Kind
    reason: str = ""


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
    if hopeless:
        return Verdict("skip", hopeless)
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
        if item and (home, item) not in state.branches:
            return f"the branches of '{item}' in iteration {home} are not open yet"
        for needed in resolve(plan, state, instance, step):
            if isinstance(required, Gate):
                if not is_approved(state, needed):
                    return f"gate {needed.key} is closed"
            elif not has_left(state, needed):
                return f"{needed.key} has not left yet"
    return None


def is_approved(state: State, gate: Instance) -> bool:
    """Whether this revision of a gate is open."""
    known = state.gate(gate)
    return known is not None and known.status == APPROVED


def has_left(state: State, instance: Instance) -> bool:
    """Whether a node has its last outcome, whatever it is."""
    node = state.node(instance)
    return node is not None and node.final


def _completed(state: State, instance: Instance) -> bool:
    node = state.node(instance)
    return node is not None and node.completed


def _hopeless(plan: Plan, state: State, instance: Instance, phase: Phase) -> str | None:
    """Why a phase whose requirements have all left will never run; ``None`` when it may."""
    for step in plan.requirements(instance.step):
        required = plan.steps[step]
        if isinstance(required, Gate) or (required.branch and (phase.branch or phase.join)):
            continue
        for needed in resolve(plan, state, instance, step):
            if not _completed(state, needed):
                return f"{needed.key} ended as {state.nodes[needed.key].status}"
    if phase.join:
        return join_failure(plan, state, phase, instance.iteration)
    if phase.branch is None:
        return None
    if cut_off(plan, state, instance):
        return CUT_OFF
    lost = next((a for a in _branch_path(plan, state, instance) if not _completed(state, a)), None)
    if lost is None:
        return None if "completed" in phase.on_branch else "its branch did not fail"
    if "failed" in phase.on_branch:
        return None
    node = state.node(lost)
    return f"{lost.key} ended as {node.status if node else 'never run'}"


def _branch_path(plan: Plan, state: State, instance: Instance) -> list[Instance]:
    """Every node of the same branch that ``instance`` builds on, directly or not."""
    path = [
        needed
        for step in plan.branch_path(instance.step)
        for needed in resolve(plan, state, instance, step)
    ]
    return sorted(path, key=lambda node: node.key)


def frontier(plan: Plan, state: State) -> Frontier:
    """What one Snakemake call can reach: up to closed gates, unknown fan-outs, the loop's turn."""
    inside: list[Instance] = []
    closed: list[Instance] = []
    reachable: set[str] = set()
    unknown: list[str] = []
    for step in _in_order(plan, members(plan, state.iteration)):
        if not all(_passable(plan, state, need, reachable) for need in plan.requirements(step)):
            continue
        nodes = _instances(plan, state, step)
        if nodes is None:
            unknown.append(step)
        elif isinstance(plan.steps[step], Phase) or is_approved(state, nodes[0]):
            inside.extend(nodes)
            reachable.add(step)
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
    reason = _stop_reason(plan, state, closed, unknown)
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
        return None
    return [state.current(step, state.iteration, branch) for branch in sorted(branches)]


def _stop_reason(plan: Plan, state: State, closed: list[Instance], unknown: list[str]) -> str:
    if state.ended:
        return f"the run has ended: {state.ended}"
    if state.halt:
        return str(state.halt)
    if closed:
        return "closed: " + ", ".join(f"gate {gate.key}" for gate in closed)
    if unknown:
        return f"the branches of {unknown[0]} are known only when its list is committed"
    if plan.loop and state.iteration < plan.loop.max:
        return f"iteration {state.iteration + 1} opens when this one has left"
    return "nothing stops it"


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
        return is_approved(state, instance)
    return has_left(state, instance)

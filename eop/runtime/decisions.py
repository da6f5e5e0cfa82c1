"""What the protocol's expressions come to in a state: guards, ways back, the loop's condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.protocol.expression_parser import parse
from eop.protocol.expressions import (
    BRANCHES,
    FRUITLESS,
    ITERATION,
    PROMOTED_FACTS,
    Unknown,
    evaluate,
    names,
)
from eop.protocol.model import Phase
from eop.runtime.node import Branch

if TYPE_CHECKING:
    from eop.protocol.expressions import Name, Value
    from eop.protocol.model import Plan
    from eop.runtime.node import Instance
    from eop.runtime.state import State


def guarded_out(plan: Plan, state: State, instance: Instance) -> str | None:
    """Why the guard of a node, whose needs are done, keeps it from running; ``None`` if it may."""
    when = plan.phase(instance.step).when
    if when is None:
        return None
    answer = _decide(plan, state, when, instance)
    if isinstance(answer, Unknown):
        return f"its guard is unknown: {answer.why}"
    return None if answer else f"its guard is false: {when}"


def goes_back(plan: Plan, state: State, instance: Instance) -> str | None:
    """Why a node that has completed sends the run back; ``None`` when it does not."""
    step, node = plan.steps[instance.step], state.node(instance)
    back = step.back if isinstance(step, Phase) else None
    if back is None or node is None or not node.completed or not state.is_current(instance):
        return None
    if state.sent_back.get((instance.iteration, instance.step), 0) >= back.max:
        return None
    answer = _decide(plan, state, back.when, instance)
    return f"{instance.key} sent it back: {back.when}" if answer is True else None


def turns_again(plan: Plan, state: State) -> bool:
    """Whether the loop's condition, once an iteration is over, asks for another one.

    What is unknown asks for nothing: a loop goes on only when it is known that it should.
    """
    assert plan.loop is not None
    for text, wanted in ((plan.loop.while_true, True), (plan.loop.until_true, False)):
        if text is None:
            continue
        answer = _decide(plan, state, text, None)
        if isinstance(answer, Unknown) or answer is not wanted:
            return False
    return True


def _decide(plan: Plan, state: State, text: str, reader: Instance | None) -> Value | Unknown:
    """The value of an expression as ``reader`` sees it, ``None`` for the loop at the turn's end."""
    tree = parse(text)
    values: dict[str, Value] = {}
    for name in names(tree):
        found = _value(plan, state, name, reader)
        if isinstance(found, Unknown):
            return found
        values[name.term] = found
    return evaluate(tree, values)


def _value(plan: Plan, state: State, name: Name, reader: Instance | None) -> Value | Unknown:
    if name.path in state.variables:
        value = state.variables[name.path]
        return len(str(value)) if name.length else value
    if name.path == ITERATION:
        return state.iteration
    if name.path == FRUITLESS:
        return _fruitless(plan, state, state.iteration - (reader is not None))
    if name.path == BRANCHES:
        return _branches(plan, state, reader)
    item = plan.phase(reader.step).branch if reader else None
    branch = Branch(item, reader.branch) if reader and item and reader.branch else None
    return state.fact(plan, name.term, state.iteration, branch)


def _branches(plan: Plan, state: State, reader: Instance | None) -> int | Unknown:
    """How many branches are open of the one fan-out that ``reader`` is in, or comes after."""
    for head in plan.heads:
        if reader is None or reader.step in plan.descendants(head.id):
            opened = state.branches.get(
                (state.home(plan, head.id, state.iteration), str(head.branch))
            )
            return Unknown("no branches are open") if opened is None else len(opened)
    return Unknown("no branches are open")


def _fruitless(plan: Plan, state: State, finished: int) -> int:
    """How many of the last iterations, up to ``finished``, made no new champion."""
    count = 0
    for iteration in range(finished, 0, -1):
        champion, parent = (state.fact(plan, t, iteration) for t in PROMOTED_FACTS)
        if not isinstance(champion, Unknown) and champion != parent:
            break
        count += 1
    return count

"""A run may go on under another plan if all that it has done could have happened under that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.protocol.model import Phase
from eop.runtime import budgets
from eop.runtime.due import asked
from eop.runtime.events import GENESIS, Event
from eop.runtime.gates import APPROVED, REJECTED
from eop.runtime.node import Instance
from eop.runtime.reduce import Refused, reduce

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from eop.protocol.model import Plan
    from eop.runtime.state import State

_ANSWERS = ("gate_approved", "gate_rejected")
# Of the front matter, what decides nothing that has happened, and what is judged by itself.
_MAY_CHANGE = ("version", "title", "budget", "variables", "facts", "document")


def kept_plan(digest: str) -> str:
    """Name of the file, in the run's folder, of a plan that the run has had or goes on with."""
    return f"plan.{digest[:16]}.json"


def differences(old: Plan, new: Plan) -> list[str]:
    """In what two plans differ, one line for each step and each key of the front matter."""
    before, after = _steps(old), _steps(new)
    lines = [f"{name}: {a!r} -> {b!r}" for name, a, b in _changed(_front(old), _front(new))]
    lines += [f"step '{name}' was removed" for name in before if name not in after]
    lines += [f"step '{name}' was added" for name in after if name not in before]
    for name in before:
        keys = [key for key, *_ in _changed(before[name], after.get(name, before[name]))]
        lines += [f"step '{name}' was changed: {', '.join(keys)}"] if keys else []
    return lines


def obstacles(old: Plan, new: Plan, state: State, events: Sequence[Event]) -> list[str]:
    """Why a run that was under ``old`` may not go on under ``new``, a line each.

    Empty when it may: no node is at work; every step that anything has happened to is the same in
    both plans; and the events so far, replayed under ``new``, are allowed and come to the same.
    """
    found = [f"the run has ended: {state.ended}"] if state.ended else []
    found += [f"{key} is at work" for key in state.active]
    found += [
        f"'{name}' of the front matter has changed"
        for name, *_ in _changed(_front(old), _front(new))
        if name not in _MAY_CHANGE
    ]
    if old.variables != new.variables:
        found.append(
            "the variables have changed, and a run has those that it began with: write the value "
            "into the expression instead"
        )
    found += _unrecorded(old, new, state)
    before, after = _steps(old), _steps(new)
    touched = _touched(old, state)
    if old.document != new.document and any(_told_all(old, name) for name in touched):
        found.append(
            "the document has changed, and a phase that is told all of it has been at work"
        )
    for name in touched:
        if name not in after:
            found.append(f"step '{name}' was removed, and it has been at work or decided")
        elif keys := [key for key, *_ in _changed(before[name], after[name])]:
            found.append(f"step '{name}' has been at work or decided: {', '.join(keys)} changed")
    return found or budgets.overdrawn(new, state) or _replayed(new, state, events)


def _unrecorded(old: Plan, new: Plan, state: State) -> list[str]:
    """Fields that only one of the plans reads of what phases have completed with.

    A field is recorded when its phase leaves, so what was not read then is not known now; and what
    was recorded stays in the trace, which must be what the plan in force asks for.
    """
    done = {Instance.parse(key).step for key, node in state.nodes.items() if node.completed}
    found = []
    for name in (phase.id for phase in old.phases if phase.id in done):
        before = old.owed(name).keys()
        after = new.owed(name).keys() if name in new.steps else before
        found += [
            f"'{term}' was not recorded when '{name}' completed, and expressions read it now"
            for term in sorted(after - before)
        ]
        found += [
            f"'{term}' was recorded when '{name}' completed, and no expression reads it any more"
            for term in sorted(before - after)
        ]
    return found


def _told_all(plan: Plan, name: str) -> bool:
    step = plan.steps.get(name)
    return isinstance(step, Phase) and step.context == "full"


def _steps(plan: Plan) -> dict[str, dict[str, Any]]:
    """Each step's markers, without the line that it stands in."""
    data = plan.to_json()
    listed = [*data["phases"], *data["gates"], *([data["loop"]] if data["loop"] else [])]
    return {
        step["id"]: {key: value for key, value in step.items() if key != "line"} for step in listed
    }


def _front(plan: Plan) -> dict[str, Any]:
    steps = ("phases", "gates", "loop", "source")
    return {key: value for key, value in plan.to_json().items() if key not in steps}


def _changed(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, object, object]]:
    for key in dict.fromkeys([*before, *after]):
        if before.get(key) != after.get(key):
            yield key, before.get(key), after.get(key)


def _touched(plan: Plan, state: State) -> list[str]:
    """Steps that nodes were entered or skipped of, gates that were answered, heads that opened."""
    names = {Instance.parse(key).step for key in state.nodes}
    names |= {
        Instance.parse(key).step
        for key, gate in state.gates.items()
        if gate.status in (APPROVED, REJECTED)
    }
    opened = {item for _, item in state.branches}
    names |= {head.id for head in plan.heads if head.branch in opened}
    return [name for name in plan.steps if name in names]


def _replayed(new: Plan, state: State, events: Sequence[Event]) -> list[str]:
    """What the events so far run into under ``new``; the digests of questions are its own."""
    replayed: State | None = None
    for event in _lasting(events):
        data = dict(event.data)
        if event.type == "run_started":
            data["plan"] = new.digest
        elif replayed is not None and event.type in ("gate_requested", *_ANSWERS):
            data["digest"] = asked(new, replayed, Instance.parse(data["gate"]))
        seq, head = (replayed.seq, replayed.head) if replayed else (0, GENESIS)
        try:
            replayed = reduce(new, replayed, Event(seq + 1, event.type, data, head, "", ""))
        except Refused as refusal:
            return [f"event {event.seq} ({event.type}) would not be allowed: {refusal.reason}"]
    same = replayed is not None and _facts(replayed) == _facts(state)
    return [] if same else ["what has happened would have come to something else"]


def _lasting(events: Sequence[Event]) -> list[Event]:
    """The events but for changes of the plan, and questions that nobody has answered."""
    lasting: dict[int, Event] = {}
    asked_at: dict[str, int] = {}
    for event in events:
        if event.type == "gate_requested":
            asked_at[event.data["gate"]] = event.seq
        elif event.type in _ANSWERS:
            question = asked_at[event.data["gate"]]
            lasting[question] = events[question - 1]
        if event.type not in ("gate_requested", "plan_changed"):
            lasting[event.seq] = event
    return [lasting[seq] for seq in sorted(lasting)]


def _facts(state: State) -> dict[str, Any]:
    """A state without what names the plan or the events, or waits for an answer."""
    named = ("plan", "seq", "head", "gates")
    decided = {
        key: (gate.status, gate.shown, gate.by, gate.reason)
        for key, gate in state.gates.items()
        if gate.status in (APPROVED, REJECTED)
    }
    return {**{k: v for k, v in vars(state).items() if k not in named}, "decided": decided}

"""When a run's nodes were at work, when its gates were asked and answered, what was spent by then.

A pure function of the trace. Times are those that events carry (ISO 8601, UTC), for people only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.runtime.node import Instance

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from eop.protocol.model import Plan
    from eop.runtime.events import Event


@dataclass(frozen=True)
class Span:
    """A node at work, one attempt; ``end`` is ``None`` while it is open."""

    row: str
    node: str
    attempt: int
    start: str
    end: str | None
    outcome: str
    reason: str


@dataclass(frozen=True)
class Asked:
    """A gate from its request to its answer; ``end`` is ``None`` while it waits."""

    row: str
    gate: str
    start: str
    end: str | None
    status: str
    by: str
    reason: str


@dataclass(frozen=True)
class Spent:
    """What had been spent at a time: agent actions that were counted, seconds of work."""

    time: str
    actions: int
    wall_s: float


@dataclass(frozen=True)
class Timeline:
    """A run in time; ``rows`` are its steps, by branch where they have some, in document order."""

    rows: tuple[str, ...]
    spans: tuple[Span, ...]
    gates: tuple[Asked, ...]
    spent: tuple[Spent, ...]
    last: str


def timeline(plan: Plan, events: Sequence[Event]) -> Timeline:
    """The time line of a trace; ``last`` is the time of its newest event."""
    last = events[-1].time if events else ""
    spans, gates = tuple(_spans(events)), tuple(_asked(events))
    order = {name: index for index, name in enumerate(plan.steps)}
    seen = {(order[_step(one.node)], one.row) for one in spans}
    seen |= {(order[_step(one.gate)], one.row) for one in gates}
    rows = tuple(row for _, row in sorted(seen))
    return Timeline(rows, spans, gates, tuple(_spent(events)), last)


def _spans(events: Iterable[Event]) -> Iterable[Span]:
    open_: dict[str, Event] = {}
    for event in events:
        if event.type == "node_entered":
            open_[event.data["node"]] = event
        elif event.type in ("node_left", "node_abandoned") and event.data["node"] in open_:
            outcome = event.data.get("outcome", "abandoned")
            entered = open_.pop(event.data["node"])
            yield _span(entered, event.time, outcome, event.data["reason"])
    for entered in open_.values():
        yield _span(entered, None, "open", "")


def _span(entered: Event, end: str | None, outcome: str, reason: str) -> Span:
    node = entered.data["node"]
    return Span(_row(node), node, entered.data["attempt"], entered.time, end, outcome, reason)


def _asked(events: Iterable[Event]) -> Iterable[Asked]:
    open_: dict[str, str] = {}
    for event in events:
        gate = event.data.get("gate", "")
        if event.type == "gate_requested":
            # Asked anew when what it shows has changed: people have waited since the first time.
            open_.setdefault(gate, event.time)
        elif event.type in ("gate_approved", "gate_rejected"):
            status = event.type.removeprefix("gate_")
            start = open_.pop(gate, event.time)
            by, reason = event.data["by"], event.data["reason"]
            yield Asked(_row(gate), gate, start, event.time, status, by, reason)
    for gate, start in open_.items():
        yield Asked(_row(gate), gate, start, None, "requested", "", "")


def _spent(events: Iterable[Event]) -> Iterable[Spent]:
    actions, wall_s = 0, 0.0
    for event in events:
        if event.type == "run_started":
            yield Spent(event.time, 0, 0.0)
        elif event.type == "node_left":
            usage = event.data["usage"]
            actions += usage["actions"] or 0
            wall_s += usage["wall_s"]
            yield Spent(event.time, actions, round(wall_s, 3))


def _step(key: str) -> str:
    return Instance.parse(key).step


def _row(key: str) -> str:
    instance = Instance.parse(key)
    name = instance.step.replace("_", " ")
    return f"{name} {instance.branch}" if instance.branch else name

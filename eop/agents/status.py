"""The status of an invocation from the facts about it: pure, first match wins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.agents.contract import Event, Mode, Reason, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_COUNTED = "tool_call"
_STOPPED_FOR_TIME = {"wall": "wall clock", "idle": "no progress"}
_STOPPED_FOR_BUDGET = {"actions": "action budget", "output": "output cap"}


@dataclass(frozen=True)
class Facts:
    """All that a status is decided from.

    ``stop`` is the limit that ended the process (wall, idle, output, actions, caller) or
    ``None``; ``rc`` is negative for a signal; ``missing`` names outputs that are absent or do not
    conform, with the reason; ``changed`` says whether the workspace differs from its base.
    """

    mode: Mode
    setup_error: str | None = None
    stop: str | None = None
    rc: int | None = None
    violations: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    over_budget: bool = False
    missing: tuple[str, ...] = ()
    changed: bool = False


def actions(events: Sequence[Event]) -> int | None:
    """Distinct tool calls; ``None`` when the stream holds no sign of life, so nobody knows."""
    if not any(event.kind == "started" for event in events):
        return None
    return len({_identity(place, e) for place, e in enumerate(events) if e.kind == _COUNTED})


def denied(events: Sequence[Event]) -> int:
    """Tool calls that the product refused."""
    return sum(e.kind == _COUNTED and e.data.get("outcome") == "denied" for e in events)


def decide(facts: Facts) -> tuple[Status, Reason]:
    """The first status that applies, and why."""
    for status, judge in _JUDGES:
        reason = judge(facts)
        if reason is not None:
            return status, reason
    return Status.OK, Reason("ok")


def _identity(place: int, event: Event) -> str:
    # A call without an id is a call of its own; it must not hide among others.
    return str(event.data.get("id") or f"#{place}")


def _setup_error(facts: Facts) -> Reason | None:
    return Reason("setup", facts.setup_error) if facts.setup_error is not None else None


def _timeout(facts: Facts) -> Reason | None:
    if facts.stop in _STOPPED_FOR_TIME:
        return Reason(facts.stop, f"stopped: {_STOPPED_FOR_TIME[facts.stop]}")
    return None


def _policy_violation(facts: Facts) -> Reason | None:
    return Reason("policy", "; ".join(facts.violations)) if facts.violations else None


def _budget_exhausted(facts: Facts) -> Reason | None:
    if facts.stop in _STOPPED_FOR_BUDGET:
        return Reason(facts.stop, f"stopped: {_STOPPED_FOR_BUDGET[facts.stop]}")
    return Reason("actions", "more actions than the budget allows") if facts.over_budget else None


def _failed(facts: Facts) -> Reason | None:
    final = _final(facts)
    said = str(final.data.get("text", "")) if final else ""
    if facts.stop is not None:
        return Reason(facts.stop, "stopped by the runtime")
    if facts.rc is None or facts.rc < 0:
        return Reason("signal", f"ended by signal {-facts.rc if facts.rc else 'unknown'}")
    if facts.rc != 0:
        return Reason("exit", f"exit status {facts.rc}" + (f": {said}" if said else ""))
    if final is not None and final.data.get("status") != "success":
        return Reason("product", said or "the product reported an error")
    return None


def _invalid_output(facts: Facts) -> Reason | None:
    if _final(facts) is None:
        return Reason("no_report", "the product left no final report")
    return Reason("outputs", "; ".join(facts.missing)) if facts.missing else None


def _blocked(facts: Facts) -> Reason | None:
    if facts.mode is Mode.WRITE and not facts.changed and denied(facts.events):
        return Reason("denied", "nothing changed and the product refused its own tool calls")
    return None


def _no_change(facts: Facts) -> Reason | None:
    if facts.mode is Mode.WRITE and not facts.changed:
        return Reason("no_change", "the workspace is as it was")
    return None


def _final(facts: Facts) -> Event | None:
    return next((event for event in reversed(facts.events) if event.kind == "final"), None)


_JUDGES: tuple[tuple[Status, Callable[[Facts], Reason | None]], ...] = (
    (Status.SETUP_ERROR, _setup_error),
    (Status.TIMEOUT, _timeout),
    (Status.POLICY_VIOLATION, _policy_violation),
    (Status.BUDGET_EXHAUSTED, _budget_exhausted),
    (Status.FAILED, _failed),
    (Status.INVALID_OUTPUT, _invalid_output),
    (Status.BLOCKED, _blocked),
    (Status.NO_CHANGE, _no_change),
)

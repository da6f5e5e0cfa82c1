"""Normalised events of a product's run, and what is counted from them: pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from eop.agents.contract import Counters, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Kind(StrEnum):
    """What an event tells; the fields of its ``data`` in parentheses."""

    STARTED = "started"  # model, session_id, version
    MODEL_CALL = "model_call"  # id
    TOOL_CALL = "tool_call"  # id, name, capability, target, outcome: ok | failed | denied
    MESSAGE = "message"  # text
    RETRY = "retry"  # http_status, detail
    DENIED = "denied"  # id, name, detail
    USAGE = "usage"  # the fields of Usage; model_calls and subagents where the product counts them
    FINAL = "final"  # status: success | error, text, structured; error, code, detail, http_status
    OTHER = "other"  # raw


@dataclass(frozen=True)
class Event:
    """One event; ``kind`` is a word of ``Kind``."""

    kind: str
    data: dict[str, Any] = field(default_factory=dict)


def usage_event(usage: Usage, **more: Any) -> Event:
    """The event that tells a usage, with counts that the product keeps itself."""
    return Event(Kind.USAGE, {**asdict(usage), **more})


def final(events: Sequence[Event]) -> Event | None:
    """The product's final report, the last one if it gave several."""
    return next((event for event in reversed(events) if event.kind == Kind.FINAL), None)


def alive(events: Sequence[Event]) -> bool:
    """Whether the product did anything at all that it tells of."""
    return any(e.kind not in (Kind.OTHER, Kind.USAGE, Kind.FINAL) for e in events)


def counters(events: Sequence[Event]) -> Counters:
    """Counts of a run; actions are unknown when the stream holds no sign of life."""
    told = _told(events)
    calls = _distinct(events, Kind.MODEL_CALL)
    return Counters(
        actions=len(_distinct(events, Kind.TOOL_CALL)) if alive(events) else None,
        denied=len(_denied(events)),
        model_calls=told["model_calls"] if "model_calls" in told else len(calls) or None,
        retries=sum(event.kind == Kind.RETRY for event in events),
        subagents=told.get("subagents") or 0,
    )


def usage(events: Sequence[Event]) -> Usage:
    """Tokens and money as the product's last word on them has it; unknown without one."""
    told = _told(events)
    known = {item.name for item in fields(Usage)}
    return replace(Usage(), **{name: told[name] for name in known & told.keys()})


def _told(events: Sequence[Event]) -> dict[str, Any]:
    return next((e.data for e in reversed(events) if e.kind == Kind.USAGE), {})


def _denied(events: Sequence[Event]) -> set[str]:
    refused = [e for e in events if e.kind == Kind.DENIED or e.data.get("outcome") == "denied"]
    return _identities(refused)


def _distinct(events: Sequence[Event], kind: Kind) -> set[str]:
    return _identities(event for event in events if event.kind == kind)


def _identities(events: Iterable[Event]) -> set[str]:
    # An event without an id is one of its own; it must not hide among others.
    return {str(event.data.get("id") or f"#{place}") for place, event in enumerate(events)}

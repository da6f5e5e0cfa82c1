"""What an agent phase at work does and has spent until now, as far as its files show."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from eop.agents.events import Kind
from eop.agents.fields import count, mapping, text
from eop.agents.gateway.ledger import LEDGER, RESERVED
from eop.agents.redact import Redactor
from eop.agents.stream import json_file
from eop.agents.workspace import Workspace
from eop.core.files import read_json
from eop.patterns import attempts
from eop.patterns.ledger import total
from eop.runtime.node import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from eop.agents.contract import Product
    from eop.agents.events import Event

_MOST_SAID = 200


@dataclass(frozen=True)
class AgentProgress:
    """An agent of a pattern, in its present attempt.

    ``actions`` and ``tokens`` are what it may spend, ``None`` without a bound. ``last`` is the last
    thing that it told of, without secrets, and ``told_at`` when; times are of the files, in seconds
    since the epoch. ``part`` is the worker's part of a phase that was broken down.
    """

    role: str
    product: str
    part: str | None
    round: int
    attempt: int
    began_at: float
    spent: Usage
    actions: int | None
    tokens: int | None
    last: str
    told_at: float | None


@dataclass(frozen=True)
class PhaseProgress:
    """``spent`` is the sum over the phase's nodes, ``None`` when none has begun.

    What is at work is counted by its gateway's ledger, where a call under way has its worst cost,
    and by its stream, which tells a lower bound.
    """

    spent: Usage | None
    agents: tuple[AgentProgress, ...]


class Reader:
    """Reads the folders of phases at work; a stream that has not changed is not parsed again."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[list[_Mark | None], Usage, str]] = {}

    def phase(self, work: Path, products: Mapping[str, Product]) -> PhaseProgress:
        """How far the nodes in a phase's folder ``work`` are; ``products`` by name."""
        spent: list[Usage] = []
        agents: list[AgentProgress] = []
        for folder in sorted(work.glob("[0-9][0-9]-*")):
            committed = folder / "committed.json"
            if committed.is_file():
                spent.append(Usage(**read_json(committed)["usage"]))
            elif product := products.get(attempts.product_of(folder) or ""):
                at = attempts.directories(folder)
                spent += [attempts.load(one, product).usage for one in at[:-1]]
                spent.append(self._newest(at[-1], product, agents))
        return PhaseProgress(total(spent) if spent else None, tuple(agents))

    def _newest(self, at: Path, product: Product, agents: list[AgentProgress]) -> Usage:
        """What the newest attempt of a node has spent; if it is at work, it joins ``agents``."""
        if attempts.is_judged(at):
            return attempts.load(at, product).usage
        recording = Workspace(at).recording(product.sessions)
        streams = [_mark(path) for path in (recording.stdout, *recording.sessions)]
        marks = [*streams, *(_mark(at / name) for name in (LEDGER, RESERVED))]
        if at not in self._known or self._known[at][0] != marks:
            seen = attempts.told(at, product)
            self._known[at] = (marks, attempts.spent_so_far(at, seen), last_thing(seen))
        _, usage, last = self._known[at]
        told_at = max(
            (mark.changed_ns / 1e9 for mark in streams if mark and mark.size), default=None
        )
        agents.append(_agent(at, product, usage, last, told_at))
        return usage


def last_thing(seen: Sequence[Event]) -> str:
    """The last of the events that says what an agent does, on one line; empty when none does.

    Agents write it: what looks like a key is taken out, and it is cut to a length.
    """
    for event in reversed(seen):
        say = _WORDS.get(event.kind)
        line = " ".join(say(event.data).split()) if say else ""
        if line:
            return Redactor().text(line)[:_MOST_SAID]
    return ""


_WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    Kind.STARTED: lambda _: "has begun",
    Kind.TOOL_CALL: lambda data: f"{data.get('name') or 'acts'} {data.get('target') or ''}",
    Kind.MESSAGE: lambda data: str(data.get("text") or ""),
    Kind.RETRY: lambda data: f"tries its model again: {data.get('detail') or 'no reason'}",
    Kind.DENIED: lambda data: f"was denied {data.get('name') or 'something'}",
    Kind.FINAL: lambda _: "has ended, and is being judged",
}


def _agent(
    at: Path, product: Product, usage: Usage, last: str, told_at: float | None
) -> AgentProgress:
    request = json_file(at / "request.json")
    turn, limits = mapping(request, "turn"), mapping(request, "limits")
    return AgentProgress(
        role=text(turn, "role") or at.parent.name.partition("-")[2],
        product=product.name,
        part=text(turn, "part") or None,
        round=count(turn, "round") or 1,
        attempt=int(at.name[1:]),
        began_at=attempts.began_at(at),
        spent=usage,
        actions=count(limits, "actions"),
        tokens=count(limits, "tokens"),
        last=last,
        told_at=told_at,
    )


class _Mark(NamedTuple):
    """Size and time of a file, by which a change is seen."""

    size: int
    changed_ns: int


def _mark(path: Path) -> _Mark | None:
    with suppress(OSError):
        status = path.lstat()
        return _Mark(status.st_size, status.st_mtime_ns)
    return None

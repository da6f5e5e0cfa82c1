"""What the scripted model says: parts of a script, chosen by what it is asked.

A reply is found from the conversation in the request alone, so that any number of agents may talk
to one server at the same time; only a fault that ends after some requests is counted.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True)
class Asked:
    """A request to the model, whatever its protocol.

    ``text`` is all that system and user said; ``turn`` counts the answers with tool calls that the
    conversation holds already; ``told`` are what those calls came to; ``schema`` is the form that
    the answer must have.
    """

    protocol: str
    model: str
    text: str
    turn: int
    tools: tuple[str, ...]
    told: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    stream: bool = False


@dataclass(frozen=True)
class Call:
    """A tool call; ``arguments`` is text for a tool that takes text and no JSON."""

    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True)
class Tokens:
    """What an answer costs; ``input`` includes what was read from the cache."""

    input: int = 1000
    cached: int = 0
    output: int = 50
    reasoning: int = 0


@dataclass(frozen=True)
class Say:
    """An answer of the model."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    tokens: Tokens = Tokens()


@dataclass(frozen=True)
class Fault:
    """Instead of an answer, the first ``times`` times (``None``: always).

    ``status`` is an HTTP error; without one the stream is opened and nothing follows.
    """

    status: int | None = None
    kind: str = "api_error"
    message: str = "scripted fault"
    times: int | None = None


Step = Say | Fault


@dataclass(frozen=True)
class Part:
    """The steps of conversations whose text holds all of ``when``; the last one is repeated."""

    steps: Sequence[Say | Fault | Callable[[Asked], Say]]
    when: tuple[str, ...] = ()

    def fits(self, asked: Asked) -> bool:
        """Whether the conversation is one of these."""
        return all(words in asked.text for words in self.when)


@dataclass
class Script:
    """Parts in order, the first that fits plays. Requests without tools are small talk."""

    parts: Sequence[Part]
    small_talk: Say = field(default_factory=lambda: Say("ok", tokens=Tokens(10, 0, 1)))

    def __post_init__(self) -> None:
        self._shown: dict[int, int] = {}
        self._lock = threading.Lock()

    def next(self, asked: Asked) -> Step:
        """The answer to ``asked``; ``LookupError`` when no part is for it."""
        if not asked.tools:
            return self.small_talk
        part = next((part for part in self.parts if part.fits(asked)), None)
        if part is None:
            raise LookupError(f"no part of the script is for: {asked.text[-300:]}")
        # Faults are no turns of the conversation: a product asks again after them.
        faults = [step for step in part.steps if isinstance(step, Fault)]
        for fault in faults:
            if self._due(fault):
                return fault
        says = [step for step in part.steps if not isinstance(step, Fault)]
        step = says[min(asked.turn, len(says) - 1)]
        return step(asked) if callable(step) else step

    def _due(self, fault: Fault) -> bool:
        with self._lock:
            shown = self._shown.get(id(fault), 0)
            if fault.times is not None and shown >= fault.times:
                return False
            self._shown[id(fault)] = shown + 1
            return True

"""What an answer of a model tells of its tokens, in each of the three protocols: pure.

Nothing that an upstream sends can raise here, and what has the wrong type was not told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from eop.agents.fields import count, mapping, objects, text
from eop.agents.gateway.sse import Events, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# No plain answer is as long; a longer one is passed on and its usage stays unknown.
_MOST_BYTES = 64 << 20


class Wire(StrEnum):
    """The protocols, by the names that ledgers have for them."""

    MESSAGES = "anthropic-messages"
    RESPONSES = "openai-responses"
    CHAT = "chat-completions"


@dataclass(frozen=True)
class Told:
    """Tokens as far as an answer has told them; ``None`` was not told, and is never 0.

    ``cache_write`` includes ``cache_write_1h``, what was written to be kept for an hour.
    ``output`` includes ``reasoning``. ``finished``: the figures are final.
    """

    model: str | None = None
    uncached: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None
    output: int | None = None
    reasoning: int | None = None
    finished: bool = False
    error: str | None = None

    @property
    def input(self) -> int | None:
        """All that was read, from the cache or not."""
        if self.uncached is None:
            return None
        return self.uncached + (self.cache_read or 0) + (self.cache_write or 0)

    @property
    def complete(self) -> bool:
        """Whether all that was read and written is known."""
        return self.finished and self.input is not None and self.output is not None


class Reader:
    """Reads an answer as it passes by: feed it the bytes, ask what was told."""

    def __init__(self, wire: Wire, *, streamed: bool) -> None:
        self.told = Told()
        self._wire = wire
        self._events = Events() if streamed else None
        self._body = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes of the answer."""
        if self._events is None:
            if len(self._body) <= _MOST_BYTES:
                self._body += chunk
            return
        for event in self._events.feed(chunk):
            self.told = _EVENTS[self._wire](self.told, event)

    def end(self) -> Told:
        """What was told, after the last byte that came."""
        if self._events is None and self._body:
            self.told = _PLAIN[self._wire](self.told, value_of(bytes(self._body)))
        return self.told


def _messages_event(told: Told, event: Any) -> Told:
    match text(event, "type"):
        case "message_start":
            message = mapping(event, "message")
            told = replace(told, model=text(message, "model") or told.model)
            return _messages_usage(told, mapping(message, "usage"))
        case "message_delta":
            # Its counts are totals so far; without a reason to stop there may be another.
            told = _messages_usage(told, mapping(event, "usage"))
            ended = text(mapping(event, "delta"), "stop_reason") and mapping(event, "usage")
            return replace(told, finished=told.finished or bool(ended))
        case "error":
            return _failed(told, mapping(event, "error"))
    return told


def _messages_plain(told: Told, body: Any) -> Told:
    told = replace(told, model=text(body, "model") or None)
    told = _messages_usage(told, mapping(body, "usage"))
    return replace(told, finished=True)


def _messages_usage(told: Told, usage: dict[str, Any]) -> Told:
    """With the counts that ``usage`` has; here the input is told without what was cached."""
    hour = count(mapping(usage, "cache_creation"), "ephemeral_1h_input_tokens")
    new: dict[str, Any] = {
        "uncached": count(usage, "input_tokens"),
        "cache_read": count(usage, "cache_read_input_tokens"),
        "cache_write": count(usage, "cache_creation_input_tokens"),
        "cache_write_1h": hour,
        "output": count(usage, "output_tokens"),
        "reasoning": count(mapping(usage, "output_tokens_details"), "thinking_tokens"),
    }
    return replace(told, **{name: value for name, value in new.items() if value is not None})


def _responses_event(told: Told, event: Any) -> Told:
    match text(event, "type"):
        case "response.completed" | "response.incomplete" | "response.failed":
            return _responses_plain(told, mapping(event, "response"))
        case "response.created":
            return replace(told, model=text(mapping(event, "response"), "model") or None)
        case "error":
            return _failed(told, event)
    return told


def _responses_plain(told: Told, body: Any) -> Told:
    told = replace(told, model=text(body, "model") or told.model)
    told = _openai_usage(told, mapping(body, "usage"), "input", "output")
    if mapping(body, "error"):
        told = _failed(told, mapping(body, "error"))
    return replace(told, finished=True)


def _chat_event(told: Told, event: Any) -> Told:
    if event == "[DONE]":
        return replace(told, finished=True)
    if mapping(event, "error"):
        return _failed(told, mapping(event, "error"))
    told = replace(told, model=text(event, "model") or told.model)
    usage = mapping(event, "usage")
    told = _openai_usage(told, usage, "prompt", "completion")
    # The usage of a whole answer comes alone; with a choice in it, it is a count so far.
    alone = bool(usage) and not objects(event, "choices")
    return replace(told, finished=told.finished or alone)


def _chat_plain(told: Told, body: Any) -> Told:
    told = replace(told, model=text(body, "model") or None)
    told = _openai_usage(told, mapping(body, "usage"), "prompt", "completion")
    return replace(told, finished=True)


def _openai_usage(told: Told, usage: dict[str, Any], read: str, written: str) -> Told:
    """With the counts that ``usage`` has; here the input is told with what was cached."""
    total, output = count(usage, f"{read}_tokens"), count(usage, f"{written}_tokens")
    details = mapping(usage, f"{read}_tokens_details")
    hit, put = count(details, "cached_tokens"), count(details, "cache_write_tokens")
    if output is not None:
        reasoning = count(mapping(usage, f"{written}_tokens_details"), "reasoning_tokens")
        told = replace(told, output=output, reasoning=reasoning)
    if total is None:
        return told
    if (hit or 0) + (put or 0) > total:
        hit = put = None
    uncached = total - (hit or 0) - (put or 0)
    return replace(told, uncached=uncached, cache_read=hit, cache_write=put)


def _failed(told: Told, error: dict[str, Any]) -> Told:
    return replace(told, error=text(error, "message", "code", "type") or "an error without a word")


_EVENTS: Mapping[Wire, Callable[[Told, Any], Told]] = MappingProxyType(
    {
        Wire.MESSAGES: _messages_event,
        Wire.RESPONSES: _responses_event,
        Wire.CHAT: _chat_event,
    }
)
_PLAIN: Mapping[Wire, Callable[[Told, Any], Told]] = MappingProxyType(
    {
        Wire.MESSAGES: _messages_plain,
        Wire.RESPONSES: _responses_plain,
        Wire.CHAT: _chat_plain,
    }
)

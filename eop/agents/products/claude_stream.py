"""The ``stream-json`` shape of Claude Code, which qwen-code speaks too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eop.agents.events import Event, Kind
from eop.agents.fields import mapping, objects, text
from eop.agents.stream import json_lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# How the program marks messages that it made up itself.
SYNTHETIC = "<synthetic>"
_NO_ACTION = frozenset({"StructuredOutput"})
_SUBAGENT_TOOLS = frozenset({"Agent", "Task", "task", "agent"})
_TARGETS = ("file_path", "path", "command", "pattern", "url", "description", "notebook_path")


@dataclass
class Stream:
    """What a stream holds, in order; ``outcomes`` are by tool call id, as far as they are told."""

    events: list[Event] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    complaint: str = ""
    subagents: int = 0

    def add(self, kind: Kind, **data: Any) -> None:
        """Append an event."""
        self.events.append(Event(kind, data))


def read(path: Path, capabilities: Mapping[str, str]) -> Stream:
    """Read a stream; ``capabilities`` names what each of the product's tools needs."""
    stream = Stream()
    for line in json_lines(path):
        _line(stream, line or {}, capabilities)
    for result in stream.results:
        for denial in objects(result, "permission_denials"):
            _deny(stream, denial, "")
    for event in stream.events:
        if event.kind == Kind.TOOL_CALL:
            event.data["outcome"] = stream.outcomes.get(event.data["id"], "ok")
    return stream


def _line(stream: Stream, line: dict[str, Any], capabilities: Mapping[str, str]) -> None:
    match text(line, "type"), text(line, "subtype"):
        case "system", "init" if not any(e.kind == Kind.STARTED for e in stream.events):
            stream.add(
                Kind.STARTED,
                model=text(line, "model"),
                session_id=text(line, "session_id"),
                version=text(line, "claude_code_version", "qwen_code_version"),
            )
        case "system", "api_retry":
            status = line.get("error_status")
            stream.add(
                Kind.RETRY,
                http_status=status if isinstance(status, int) else None,
                detail=text(line, "error"),
            )
        case "system", "permission_denied":
            _deny(stream, line, text(line, "message"))
        case "assistant", _:
            _assistant(stream, line, capabilities)
        case "user", _:
            _tool_results(stream, line)
        case "stream_event", _:
            _partial(stream, mapping(line, "event"))
        case "result", _:
            stream.results.append(line)
        case _:
            stream.add(Kind.OTHER, raw=line)


def _assistant(stream: Stream, line: dict[str, Any], capabilities: Mapping[str, str]) -> None:
    message = mapping(line, "message")
    if text(message, "model") == SYNTHETIC:
        stream.complaint = text(line, "error")
    else:
        _model_call(stream, message)
    for block in objects(message, "content"):
        name, identity = text(block, "name"), text(block, "id")
        if block.get("type") == "text":
            stream.add(Kind.MESSAGE, text=text(block, "text"))
        elif block.get("type") == "tool_use" and name in _NO_ACTION:
            stream.add(Kind.OTHER, raw=block)
        elif block.get("type") == "tool_use":
            stream.subagents += name in _SUBAGENT_TOOLS
            stream.add(
                Kind.TOOL_CALL,
                id=identity,
                name=name,
                capability=capabilities.get(name, "other"),
                target=text(block.get("input"), *_TARGETS)[:200],
            )


def _model_call(stream: Stream, message: dict[str, Any]) -> None:
    """One line per content block: the same message comes again, and its usage with it."""
    identity = text(message, "id") or f"#{len(stream.messages)}"
    if identity not in stream.messages:
        stream.add(Kind.MODEL_CALL, id=identity)
    known = stream.messages.setdefault(identity, {})
    known.update(mapping(message, "usage"))


def _partial(stream: Stream, event: dict[str, Any]) -> None:
    """Of the pieces only the count at the end of a message says more than the whole lines do."""
    if event.get("type") == "message_start":
        _model_call(stream, mapping(event, "message"))
    elif event.get("type") == "message_delta" and stream.messages:
        last = next(reversed(stream.messages.values()))
        last["told_output"] = mapping(event, "usage").get("output_tokens")


def _tool_results(stream: Stream, line: dict[str, Any]) -> None:
    for block in objects(line.get("message"), "content"):
        identity = text(block, "tool_use_id")
        if identity and block.get("is_error") is True:
            stream.outcomes.setdefault(identity, "failed")


def _deny(stream: Stream, denial: dict[str, Any], detail: str) -> None:
    identity = text(denial, "tool_use_id")
    stream.outcomes[identity] = "denied"
    stream.add(Kind.DENIED, id=identity, name=text(denial, "tool_name"), detail=detail)

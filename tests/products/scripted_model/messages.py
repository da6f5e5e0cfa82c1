"""Anthropic's Messages: ``POST /v1/messages``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scripted_model.script import Asked
from scripted_model.text import fresh, pieces, said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripted_model.script import Say, Tokens

NAME, PATH = "messages", "/v1/messages"
# By this tool Claude Code lets the model answer in a form.
ANSWER = "StructuredOutput"


def read(body: dict[str, Any]) -> Asked:
    """The request in the script's terms; ``ValueError`` for what the real service refuses."""
    tools = body.get("tools") or []
    for place, tool in enumerate(tools):
        if "input_schema" in tool and tool["input_schema"].get("type") != "object":
            raise ValueError(f"tools.{place}.custom.input_schema.type: Input should be 'object'")
    spoken = body["messages"]
    results = [
        block
        for message in spoken
        if message["role"] == "user" and isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    asking = [message for message in spoken if message["role"] == "assistant" and _calls(message)]
    heard = [message["content"] for message in spoken if message["role"] == "user"]
    return Asked(
        protocol=NAME,
        model=body["model"],
        text="\n".join([said(body.get("system")), *map(said, heard)]),
        turn=len(asking),
        tools=tuple(tool["name"] for tool in tools),
        told=tuple(said(block.get("content")) for block in results),
        schema=next((t["input_schema"] for t in tools if t["name"] == ANSWER), None),
        stream=bool(body.get("stream")),
    )


def reply(say: Say, model: str) -> dict[str, Any]:
    """The whole answer."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": say.text}] if say.text else []
    for call in say.calls:
        blocks.append(
            {"type": "tool_use", "id": fresh("toolu"), "name": call.name, "input": call.arguments}
        )
    return {
        "id": fresh("msg"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if say.calls else "end_turn",
        "stop_sequence": None,
        "usage": _usage(say.tokens),
    }


def frames(message: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same answer as a stream of events."""
    usage = message["usage"]
    opened = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _event("message_start", message=opened)
    for place, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, kind, key, whole = {**block, "text": ""}, "text_delta", "text", block["text"]
        else:
            empty, kind, key = {**block, "input": {}}, "input_json_delta", "partial_json"
            whole = json.dumps(block["input"])
        yield _event("content_block_start", index=place, content_block=empty)
        for piece in pieces(whole):
            yield _event("content_block_delta", index=place, delta={"type": kind, key: piece})
        yield _event("content_block_stop", index=place)
    stopped = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=stopped, usage=usage)
    yield _event("message_stop")


def complaint(kind: str, message: str) -> dict[str, Any]:
    """The body of an error."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def _calls(message: dict[str, Any]) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(block["type"] == "tool_use" for block in content)


def _usage(tokens: Tokens) -> dict[str, int]:
    return {
        "input_tokens": tokens.input - tokens.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output,
    }


def _event(name: str, **data: Any) -> tuple[str, dict[str, Any]]:
    return name, {"type": name, **data}

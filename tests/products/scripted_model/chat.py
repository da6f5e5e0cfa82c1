"""OpenAI's Chat Completions: ``POST /v1/chat/completions``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scripted_model.script import Asked
from scripted_model.text import fresh, pieces, said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripted_model.script import Say, Tokens

NAME, PATH = "chat", "/v1/chat/completions"


def read(body: dict[str, Any]) -> Asked:
    """The request in the script's terms."""
    spoken = body["messages"]
    results = [message for message in spoken if message["role"] == "tool"]
    asking = [m for m in spoken if m["role"] == "assistant" and m.get("tool_calls")]
    heard = [m["content"] for m in spoken if m["role"] in ("system", "developer", "user")]
    return Asked(
        protocol=NAME,
        model=body["model"],
        text="\n".join(map(said, heard)),
        turn=len(asking),
        tools=tuple(tool["function"]["name"] for tool in body.get("tools") or []),
        told=tuple(said(message.get("content")) for message in results),
        stream=bool(body.get("stream")),
    )


def reply(say: Say, model: str) -> dict[str, Any]:
    """The whole answer."""
    message: dict[str, Any] = {"role": "assistant", "content": say.text or None}
    if say.calls:
        message["tool_calls"] = [
            {
                "id": fresh("call"),
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in say.calls
        ]
    finish = "tool_calls" if say.calls else "stop"
    return {
        "id": fresh("chatcmpl"),
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": _usage(say.tokens),
    }


def frames(body: dict[str, Any]) -> Iterator[tuple[None, dict[str, Any] | None]]:
    """The same answer as a stream of chunks; the last, ``None``, is its end."""
    head = {key: body[key] for key in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    choice = body["choices"][0]
    message = choice["message"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield None, chunk({"role": "assistant", "content": ""})
    for piece in pieces(message["content"] or ""):
        yield None, chunk({"content": piece})
    for place, call in enumerate(message.get("tool_calls", [])):
        yield None, chunk({"tool_calls": [{"index": place, **call}]})
    yield None, chunk({}, choice["finish_reason"])
    yield None, {**head, "choices": [], "usage": body["usage"]}
    yield None, None


def complaint(kind: str, message: str) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"type": kind, "message": message, "code": kind, "param": None}}


def _usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "prompt_tokens": tokens.input,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens": tokens.output,
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    }

"""OpenAI's Responses: ``POST /v1/responses``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scripted_model import strict
from scripted_model.script import Asked
from scripted_model.text import fresh, pieces, said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripted_model.script import Call, Say, Tokens

NAME, PATH = "responses", "/v1/responses"
_SPEAKERS = ("system", "developer", "user")


def read(body: dict[str, Any]) -> Asked:
    """The request in the script's terms; ``ValueError`` for what the real service refuses."""
    form = (body.get("text") or {}).get("format") or {}
    if form.get("strict"):
        strict.require(form["schema"], form["name"])
    spoken = body["input"] if isinstance(body["input"], list) else []
    outputs = [item for item in spoken if str(item.get("type")).endswith("_call_output")]
    heard = [item.get("content") for item in spoken if item.get("role") in _SPEAKERS]
    return Asked(
        protocol=NAME,
        model=body["model"],
        text="\n".join([body.get("instructions") or "", *map(said, heard)]),
        turn=len(outputs),
        tools=tuple(str(tool.get("name") or tool["type"]) for tool in body.get("tools") or []),
        told=tuple(_output(item.get("output")) for item in outputs),
        schema=form.get("schema"),
        stream=bool(body.get("stream")),
    )


def reply(say: Say, model: str) -> dict[str, Any]:
    """The whole answer."""
    items: list[dict[str, Any]] = []
    if say.text:
        text = {"type": "output_text", "text": say.text, "annotations": []}
        items.append(
            {
                "type": "message",
                "id": fresh("msg"),
                "role": "assistant",
                "status": "completed",
                "content": [text],
            }
        )
    items += [_call(call) for call in say.calls]
    return {
        "id": fresh("resp"),
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": model,
        "output": items,
        "usage": _usage(say.tokens),
        "error": None,
    }


def frames(response: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same answer as a stream of events."""
    opened = {**response, "status": "in_progress", "output": [], "usage": None}
    yield _event("response.created", response=opened)
    for place, item in enumerate(response["output"]):
        begun = {**item, "status": "in_progress"}
        if item["type"] == "message":
            begun["content"] = []
        yield _event("response.output_item.added", output_index=place, item=begun)
        if item["type"] == "message":
            for piece in pieces(item["content"][0]["text"]):
                yield _event(
                    "response.output_text.delta",
                    item_id=item["id"], output_index=place, content_index=0, delta=piece,
                )  # fmt: skip
        yield _event("response.output_item.done", output_index=place, item=item)
    yield _event("response.completed", response=response)


def complaint(kind: str, message: str) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"type": kind, "message": message, "code": kind, "param": None}}


def _call(call: Call) -> dict[str, Any]:
    head = {"call_id": fresh("call"), "name": call.name, "status": "completed"}
    if isinstance(call.arguments, str):
        return {"type": "custom_tool_call", "id": fresh("ctc"), "input": call.arguments, **head}
    arguments = json.dumps(call.arguments)
    return {"type": "function_call", "id": fresh("fc"), "arguments": arguments, **head}


def _output(output: Any) -> str:
    return output if isinstance(output, str) else json.dumps(output)


def _usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    }


def _event(name: str, **data: Any) -> tuple[str, dict[str, Any]]:
    return name, {"type": name, **data}

"""What a request asks of a model, and what it can come to at most: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.agents.fields import count, mapping, objects, text
from eop.agents.gateway.told import Wire

if TYPE_CHECKING:
    from collections.abc import Iterator

# An image costs by its size in pixels, which its bytes do not bound; models scale it down to less.
_IMAGE_TOKENS = 20_000
_IMAGES = frozenset({"image", "image_url", "input_image"})
# Their tokens cannot be told from the request: pages of a document, files by their name.
_FILES = frozenset({"document", "file", "input_file", "input_audio", "container_upload"})
# What the provider adds to the words of a request: its own words round tools and turns.
_FRAME_TOKENS = 4096
_KEPT_BY_PROVIDER = ("previous_response_id", "conversation", "prompt")
# Tools that the provider runs itself: they reach the web, and cost more than tokens.
_SERVER_TOOLS = (
    "web_search", "web_fetch", "code_execution", "code_interpreter", "file_search",
    "image_generation", "mcp",
)  # fmt: skip
_SERVER_KEYS = ("mcp_servers", "web_search_options", "container")
_STANDARD_TIERS = frozenset({"", "auto", "default", "standard", "standard_only"})


@dataclass(frozen=True)
class Asked:
    """A request: ``most_input`` and ``most_output`` are bounds in tokens, ``None`` without one.

    ``answers`` is the number of answers to one prompt. ``refusal`` says why it may not be passed
    on at all. ``list_price`` is false for a service whose price is not that of the list.
    """

    model: str
    most_input: int | None
    most_output: int | None
    answers: int = 1
    refusal: str | None = None
    list_price: bool = True


def read(wire: Wire, body: dict[str, Any], size: int) -> Asked:
    """What the request ``body`` of ``size`` bytes asks; a token has one byte of it at least."""
    answers = max(count(body, "n") or 1, 1)
    return Asked(
        model=text(body, "model"),
        most_input=_most_input(wire, body, size),
        most_output=_most_output(body, answers),
        answers=answers,
        refusal=_refusal(body),
        list_price=text(body, "service_tier") in _STANDARD_TIERS and "speed" not in body,
    )


def amended(wire: Wire, body: dict[str, Any], most_output: int | None) -> dict[str, Any]:
    """The request as it is passed on: it asks for its usage and, if that is given, for no more.

    ``most_output`` is for each answer; it is put where the request sets no bound of its own.
    """
    more: dict[str, Any] = {}
    if most_output is not None:
        more["max_output_tokens" if wire is Wire.RESPONSES else "max_completion_tokens"] = (
            most_output
        )
    if wire is Wire.CHAT and body.get("stream") is True:
        more["stream_options"] = {**mapping(body, "stream_options"), "include_usage": True}
    return {**body, **more}


def _most_output(body: dict[str, Any], answers: int) -> int | None:
    names = ("max_tokens", "max_output_tokens", "max_completion_tokens")
    bounds = [bound for name in names if (bound := count(body, name)) is not None]
    return max(bounds) * answers if bounds else None


def _most_input(wire: Wire, body: dict[str, Any], size: int) -> int | None:
    if any(body.get(name) for name in _KEPT_BY_PROVIDER):
        return None
    images = 0
    for part in _parts(wire, body):
        kind = text(part, "type")
        if kind == "item_reference":
            return None
        if kind in _FILES and text(mapping(part, "source"), "type") != "text":
            return None
        images += kind in _IMAGES
    return size + _FRAME_TOKENS + images * _IMAGE_TOKENS


def _parts(wire: Wire, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every part of every turn; those in the result of a tool too."""
    turns = objects(body, "input" if wire is Wire.RESPONSES else "messages")
    for turn in turns:
        yield turn
        for part in [*objects(turn, "content"), *objects(turn, "output")]:
            yield part
            yield from objects(part, "content")


def _refusal(body: dict[str, Any]) -> str | None:
    if body.get("background"):
        return "an answer in the background cannot be metered"
    for name in _SERVER_KEYS:
        if body.get(name):
            return f"'{name}' lets the provider reach further than the agent may"
    for tool in objects(body, "tools"):
        if text(tool, "type").startswith(_SERVER_TOOLS):
            return f"the provider would run the tool '{text(tool, 'type')}' itself"
    return None

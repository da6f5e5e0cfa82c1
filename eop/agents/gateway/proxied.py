"""What of a request may pass the gateway, and how it answers itself: pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from eop.agents.gateway.told import Wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Headers of one connection, and those that the gateway says itself.
_OF_CONNECTION = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
        "trailers", "transfer-encoding", "upgrade", "proxy-connection", "expect", "host",
        "content-length", "content-encoding", "accept-encoding", "cookie", "set-cookie",
    }
)  # fmt: skip
_KEYS = ("x-api-key", "authorization", "api-key")
_BEARER = "Bearer "
_MODELS = "/models"
_COUNT_TOKENS = "/messages/count_tokens"
_CALLS: Mapping[str, Wire] = MappingProxyType(
    {
        "/messages": Wire.MESSAGES,
        "/responses": Wire.RESPONSES,
        "/chat/completions": Wire.CHAT,
    }
)


@dataclass(frozen=True)
class Route:
    """A path that passes: ``wire`` for a call of a model, ``None`` for what costs nothing."""

    path: str
    wire: Wire | None = None


def route(method: str, path: str, base: str) -> Route | None:
    """Where a request goes; ``None`` for every path but the few that agents need.

    ``base`` is the path of the API's base URL. What is not known is not passed on: it might cost
    something that nobody counts, or tell of other users of the key.
    """
    if not path.startswith(f"{base}/"):
        return None
    name = path.removeprefix(base).removeprefix("/v1")
    if method == "GET" and (name == _MODELS or _is_model(name)):
        return Route(path)
    if method == "POST" and name == _COUNT_TOKENS:
        return Route(path, None)
    if method == "POST" and name in _CALLS:
        return Route(path, _CALLS[name])
    return None


def _is_model(name: str) -> bool:
    model = name.removeprefix(f"{_MODELS}/")
    return model != name and model.replace("-", "").replace(".", "").replace(":", "").isalnum()


def token_of(headers: Mapping[str, str]) -> str:
    """The token that a request came with; empty without one."""
    for name in _KEYS:
        if name in headers:
            return headers[name].removeprefix(_BEARER).strip()
    return ""


def onward_headers(headers: Iterable[tuple[str, str]], token: str, key: str) -> dict[str, str]:
    """The headers of a request to the API: the key stands where the token stood."""
    named = dict(_passing(headers))
    for name in [name for name in named if name.lower() in _KEYS]:
        given = named.pop(name)
        if given.removeprefix(_BEARER).strip() == token:
            named[name] = f"{_BEARER}{key}" if given.startswith(_BEARER) else key
    return {**named, "Accept-Encoding": "identity"}


def back_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers of an answer that go to the agent, those with a meaning for it."""
    return _passing(headers)


def _passing(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    listed = list(headers)
    named = {
        word.strip().lower()
        for name, value in listed
        if name.lower() == "connection"
        for word in value.split(",")
    }
    dropped = _OF_CONNECTION | named
    return [(name, value) for name, value in listed if name.lower() not in dropped]


def own_error(wire: Wire | None, message: str, code: str) -> bytes:
    """The body of an error that the gateway itself answers with, as the protocol has errors."""
    if wire is Wire.MESSAGES:
        error: dict[str, Any] = {"type": code, "message": message}
        return json.dumps({"type": "error", "error": error}).encode()
    error = {"message": message, "type": code, "code": code, "param": None}
    return json.dumps({"error": error}).encode()


def refusal_status(wire: Wire) -> int:
    """The HTTP status by which every measured product gives up at once, without trying again."""
    return 403 if wire is Wire.MESSAGES else 400

"""The agent products that a protocol may name: the tools each can enforce, what it measures."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOLS = ("read", "edit", "shell")

# Some tools cannot be denied one by one (Codex reads by running commands, the file tool of
# OpenHands reads and edits): a node that asks for that is refused when it starts.
PRODUCTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "claude-code": frozenset(TOOLS),
        "codex": frozenset(TOOLS),
        "opencode": frozenset(TOOLS),
        "openhands": frozenset(TOOLS),
        "qwen-code": frozenset(TOOLS),
        "scripted": frozenset(TOOLS),
    }
)

# Units that a product reports; the runtime measures time itself.
MEASURES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "claude-code": frozenset({"actions", "tokens", "usd"}),
        "codex": frozenset({"actions", "tokens"}),
        "opencode": frozenset({"actions", "tokens", "usd"}),
        "openhands": frozenset({"actions", "tokens", "usd"}),
        "qwen-code": frozenset({"actions", "tokens"}),
        "scripted": frozenset({"actions", "tokens", "usd"}),
    }
)

"""The agent products that a protocol may name, and the tools each can enforce."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOLS = ("read", "edit", "shell")

PRODUCTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "claude-code": frozenset(TOOLS),
        "codex": frozenset(TOOLS),
        "opencode": frozenset(TOOLS),
        "openhands": frozenset(TOOLS),
        "qwen-code": frozenset(TOOLS),
        "scripted": frozenset(TOOLS),
        "scripted-peer": frozenset(TOOLS),
    }
)

# Tools that a product works by, and why: without them a phase cannot have it.
UNDENIABLE: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "codex": MappingProxyType({"shell": "it reads and writes by running commands"}),
        "openhands": MappingProxyType({"read": "its file tool reads and edits"}),
    }
)

# Who makes a product: two of one vendor are no independent pair of eyes.
VENDORS: Mapping[str, str] = MappingProxyType(
    {
        "claude-code": "anthropic",
        "codex": "openai",
        "opencode": "opencode",
        "openhands": "openhands",
        "qwen-code": "qwen",
        "scripted": "scripted",
        "scripted-peer": "scripted-peer",
    }
)


def vendor_of(product: str) -> str:
    """Who makes a product; one that nobody knows is a vendor of its own."""
    return VENDORS.get(product, product)

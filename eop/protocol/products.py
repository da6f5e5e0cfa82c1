"""The agent products that a protocol may name, and the tool allow-lists that each can enforce."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOLS = ("read", "edit", "shell")

PRODUCTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "scripted": frozenset(TOOLS),
    }
)

"""One module for each agent product; ``REAL`` are those that need settings and an endpoint."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from eop.agents.products.claude_code import ClaudeCode
from eop.agents.products.codex import Codex
from eop.agents.products.opencode import OpenCode
from eop.agents.products.openhands import OpenHands
from eop.agents.products.qwen_code import QwenCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eop.agents.contract import Product
    from eop.agents.products.program import Settings

REAL: Mapping[str, Callable[[Settings], Product]] = MappingProxyType(
    {
        "claude-code": ClaudeCode,
        "codex": Codex,
        "openhands": OpenHands,
        "opencode": OpenCode,
        "qwen-code": QwenCode,
    }
)

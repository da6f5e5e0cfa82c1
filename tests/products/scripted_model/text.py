"""What the three protocols share: texts in their nested forms, ids, pieces of a stream."""

from __future__ import annotations

import uuid
from typing import Any


def said(content: Any) -> str:
    """The text of a message's content, a string or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(block.get("text") or "" for block in blocks if isinstance(block, dict))


def fresh(prefix: str) -> str:
    """A new id."""
    return f"{prefix}_{uuid.uuid4().hex[:24]}"


def pieces(text: str, size: int = 200) -> list[str]:
    """A text as a stream brings it."""
    return [text[start : start + size] for start in range(0, len(text), size)]

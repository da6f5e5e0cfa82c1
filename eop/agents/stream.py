"""JSON lines of a product's stream: unfinished, broken and hostile ones included."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def json_lines(path: Path) -> Iterator[dict[str, Any] | None]:
    """Each finished line as an object, ``None`` for a line that is none.

    A last line without a newline was cut off and is not told from one that is still written, so
    it is left out.
    """
    with path.open("rb") as stream:
        for line in stream:
            if line.endswith(b"\n") and line.strip():
                yield _object(line)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line.decode(errors="replace"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return _encodable(value) if isinstance(value, dict) else None


def _encodable(value: Any) -> Any:
    """The same value with lone surrogates replaced: it must be possible to write it down."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value

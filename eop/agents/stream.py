"""JSON lines of a product's stream: unfinished, broken and hostile ones included."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# More than any session writes; a file that is bigger is no record but an attack on memory.
_MOST_BYTES = 256 << 20


def json_lines(path: Path) -> Iterator[dict[str, Any] | None]:
    """Each finished line as an object, ``None`` for a line that is none; none for no such file.

    A last line without a newline that is no whole object was cut off and is not told from one
    that is still written, so it is left out.
    """
    if not is_readable(path):
        return
    with path.open("rb") as stream:
        for line in stream:
            value = _object(line) if line.strip() else None
            if value is not None or (line.endswith(b"\n") and line.strip()):
                yield value


def json_file(path: Path) -> dict[str, Any]:
    """The object in a file, an empty one when there is none in it."""
    return _object(path.read_bytes()) or {} if is_readable(path) else {}


def tail(path: Path, size: int = 4096) -> str:
    """The last bytes of a text file, for messages to people; empty for no such file."""
    if not is_readable(path):
        return ""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - size))
        return stream.read(size).decode(errors="replace")


def is_readable(path: Path) -> bool:
    """Whether a product's file may be read: a regular one, no link, not over the cap."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_BYTES


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line.decode(errors="replace"), parse_constant=lambda _: None)
        return _encodable(value) if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        return None


def _encodable(value: Any) -> Any:
    """The same value with lone surrogates replaced: it must be possible to write it down."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value

"""JSON lines of a product's stream: unfinished, broken and hostile ones included."""

from __future__ import annotations

import json
import os
import stat
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# More than any session writes; a file that is bigger is no record but an attack on memory.
_MOST_BYTES = 256 << 20


def json_lines(path: Path) -> Iterator[dict[str, Any] | None]:
    """Each finished line as an object, ``None`` for a line that is none; none for no such file.

    The objects of a list on one line are told one by one: some products give a whole run so.
    A last line without a newline that is no whole object was cut off and is not told from one
    that is still written, so it is left out.
    """
    with _opened(path) as stream:
        for line in stream:
            if line.strip():
                found = _objects(line)
                yield from found
                if not found and line.endswith(b"\n"):
                    yield None
            if stream.tell() > _MOST_BYTES:
                return


def json_file(path: Path) -> dict[str, Any]:
    """The object in a file, an empty one when there is none in it."""
    with _opened(path) as stream:
        return _object(stream.read(_MOST_BYTES)) or {}


def tail(path: Path, size: int = 4096) -> str:
    """The last bytes of a text file, for messages to people; empty for no such file."""
    with _opened(path) as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - size))
        return stream.read(size).decode(errors="replace")


def size_of(path: Path) -> int:
    """Bytes of a file that may go away at any moment; 0 for none."""
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def is_readable(path: Path) -> bool:
    """Whether a product's file may be read: a regular one, no link, not over the cap."""
    try:
        return _is_record(path.lstat())
    except OSError:
        return False


def _opened(path: Path) -> BinaryIO:
    """The file, an empty one where it may not be read; what was looked at is what is read.

    The product may be at work on it: nothing waits for a pipe that it puts in its place.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return BytesIO()
    if _is_record(os.fstat(handle)):
        return os.fdopen(handle, "rb")
    os.close(handle)
    return BytesIO()


def _is_record(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_BYTES


def _object(content: bytes) -> dict[str, Any] | None:
    found = _decoded(content)
    return found if isinstance(found, dict) else None


def _objects(line: bytes) -> list[dict[str, Any]]:
    found = _decoded(line)
    listed = found if isinstance(found, list) else [found]
    return [one for one in listed if isinstance(one, dict)]


def _decoded(content: bytes) -> Any:
    try:
        value = json.loads(content.decode(errors="replace"), parse_constant=lambda _: None)
        return _encodable(value)
    except (ValueError, RecursionError):
        return None


def _encodable(value: Any) -> Any:
    """The same value with lone surrogates replaced: it must be possible to write it down."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value

"""Server-sent events out of bytes that come in any pieces: pure."""

from __future__ import annotations

import json
import re
from typing import Any

_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
# No event of a model is as long: the end of a longer one is not kept in memory.
_MOST_BYTES = 64 << 20


class Events:
    """Feed it the bytes of a stream; it hands back the data of each event that has ended."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held = 0
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Any]:
        """The events that ``chunk`` ends, as JSON values; text for data that is no JSON.

        An event counts once the empty line after it has come, so one that was cut off is not told.
        """
        if not _LINE_END.search(chunk) and not self._ends_with_return():
            self._keep(chunk)
            return []
        *lines, rest = _LINE_END.split(b"".join([*self._pieces, chunk]))
        self._pieces, self._held = [], 0
        self._keep(rest)
        return [event for line in lines for event in self._line(line)]

    def _ends_with_return(self) -> bool:
        return bool(self._pieces) and self._pieces[-1].endswith(b"\r")

    def _keep(self, piece: bytes) -> None:
        self._held += len(piece)
        if piece and self._held <= _MOST_BYTES:
            self._pieces.append(piece)

    def _line(self, line: bytes) -> list[Any]:
        if line:
            name, _, value = line.partition(b":")
            self._size += len(value)
            if name == b"data" and self._size <= _MOST_BYTES:
                self._data.append(value.removeprefix(b" "))
            return []
        data, self._data, self._size = b"\n".join(self._data), [], 0
        return [value_of(data)] if data else []


def value_of(data: bytes) -> Any:
    """The JSON value in ``data``, else its text."""
    text = data.decode(errors="replace")
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return text

"""Diagnostics: what is wrong in a protocol, shown at its place with a caret and a hint."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode, Where
from eop.protocol.codes import CODES

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_LINE = 240


@dataclass(frozen=True)
class Span:
    """A stretch of one line; ``line`` and ``column`` count from 1, ``width`` in characters."""

    line: int
    column: int = 1
    width: int = 1


@dataclass(frozen=True)
class Diagnostic:
    """One fault. ``source`` is the line it stands on, ``width`` the number of characters meant.

    A fault of the file as a whole (it is missing) has no line, hence no ``source``.
    """

    code: str
    message: str
    where: Where
    source: str | None = None
    width: int = 1
    hint: str | None = None


class ProtocolErrors(EopError):  # noqa: N818 - it holds them all, not one
    """Everything that is wrong with a protocol; ``diagnostics`` is in the order of the file."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        first = diagnostics[0]
        count = len(diagnostics)
        super().__init__(
            first.code,
            f"{count} error{'s' if count > 1 else ''} in {first.where.path}",
            where=first.where,
            exit_code=ExitCode.PROTOCOL,
        )
        self.diagnostics = list(diagnostics)

    def __str__(self) -> str:
        return render(self.diagnostics)


class Report:
    """Collects the faults of one source; ``lines`` are the source's, without line ends."""

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        self.path = path
        self._lines = lines
        self._found: list[Diagnostic] = []

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Note a fault at ``span``. ``KeyError`` for a code that is not in the table."""
        if code not in CODES:
            raise KeyError(code)
        where = Where(self.path, span.line, span.column)
        source = self._lines[span.line - 1] if span.line <= len(self._lines) else ""
        found = Diagnostic(code, message, where, source, max(span.width, 1), hint)
        if found not in self._found:
            self._found.append(found)

    def text(self, span: Span) -> str:
        """What stands at ``span`` in the source."""
        line = self._lines[span.line - 1] if span.line <= len(self._lines) else ""
        return line[span.column - 1 : span.column - 1 + span.width]

    @property
    def count(self) -> int:
        """How many faults there are so far."""
        return len(self._found)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The faults in the order of the file."""
        return sorted(self._found, key=_order)


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """Each fault as ``path:line:col: error[CODE] message``, the line, a caret and the hint."""
    return "\n\n".join(_render_one(diagnostic) for diagnostic in diagnostics)


def _order(diagnostic: Diagnostic) -> tuple[int, int, str]:
    return (diagnostic.where.line or 0, diagnostic.where.column or 0, diagnostic.code)


def _render_one(found: Diagnostic) -> str:
    parts = [f"{found.where}: error[{found.code}] {found.message}"]
    if found.source is not None and found.where.line and found.where.column:
        gutter = str(found.where.line)
        source, start = _part(found.source, found.where.column - 1)
        padding = "".join(map(_blank, source[:start].ljust(start)))
        width = sum(len(_blank(char)) for char in source[start : start + found.width])
        parts.append(f"  {gutter} | {source}")
        parts.append(f"  {' ' * len(gutter)} | {padding}{'^' * max(width, 1)}")
    if found.hint:
        parts.append(f"  hint: {found.hint}")
    return "\n".join(parts)


def _part(line: str, start: int) -> tuple[str, int]:
    """What of a line is shown, and where ``start`` is in it: of a very long one the parts near."""
    if len(line) <= _LONGEST_LINE:
        return line, start
    first = max(0, start - _LONGEST_LINE // 2)
    shown = line[first : first + _LONGEST_LINE]
    before, after = "…" * (first > 0), "…" * (first + _LONGEST_LINE < len(line))
    return f"{before}{shown}{after}", start - first + len(before)


def _blank(char: str) -> str:
    """What keeps the caret under its character: tabs stay, wide characters take two columns."""
    if char == "\t":
        return char
    return "  " if unicodedata.east_asian_width(char) in "WF" else " "

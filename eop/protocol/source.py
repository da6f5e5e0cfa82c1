"""Reading a protocol file: text, lines and the name that messages give it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.core.errors import Where
from eop.protocol.diagnostics import Diagnostic, Report, Span

if TYPE_CHECKING:
    from pathlib import Path

# YAML reads these as line ends or refuses them; Markdown does not. Line numbers must agree.
_LINE_ENDS = "\u2028\u2029\ufeff\ufffe\uffff"
# What an agent is told must be what a reviewer has seen: nothing that hides, joins or turns text
# round. Joiners that scripts and emoji need (U+200C, U+200D) and marks of direction stay.
_HIDDEN = "\u00ad\u180e\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f"
_CONTROLS = "\\x00-\\x08\\x0a-\\x1f\\x7f-\\x9f"
_FORBIDDEN = re.compile(f"[{_CONTROLS}{_LINE_ENDS}{_HIDDEN}]")


@dataclass(frozen=True)
class Source:
    """A readable protocol: ``path`` as messages show it, ``lines`` without their ends."""

    path: str
    lines: tuple[str, ...]


def read_source(path: Path, root: Path) -> Source | Diagnostic:
    """The text of ``path``, or the fault that keeps it from being read at all."""
    shown = _shown(path, root)
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "give the path of a protocol, a file that ends in .eop.md"
        return Diagnostic("EOP101", f"cannot read it: {reason}", Where(shown), hint=hint)
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        return _not_text(shown, content, error.start)
    if not text.strip():
        return Diagnostic(
            "EOP103", "the file is empty", Where(shown, 1, 1), "", hint="start with front matter"
        )
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    return Source(shown, tuple(unix.split("\n")))


def check_characters(source: Source, report: Report) -> bool:
    """Report every character that YAML, a terminal or a reader would trip over; true if none."""
    before = report.count
    for number, line in enumerate(source.lines, start=1):
        for match in _FORBIDDEN.finditer(line):
            report.error(
                "EOP104",
                f"the character U+{ord(match[0]):04X} is not allowed",
                Span(number, match.start() + 1),
                "delete it; it is invisible in most editors",
            )
    return report.count == before


def _shown(path: Path, root: Path) -> str:
    absolute, base = path.absolute(), root.absolute()
    return (absolute.relative_to(base) if absolute.is_relative_to(base) else path).as_posix()


def _not_text(shown: str, content: bytes, offset: int) -> Diagnostic:
    start = content.rfind(b"\n", 0, offset) + 1
    column = len(content[start:offset].decode("utf-8", errors="replace")) + 1
    line = content[start:].split(b"\n", 1)[0].decode("utf-8", errors="replace").rstrip("\r")
    where = Where(shown, content.count(b"\n", 0, offset) + 1, column)
    message = f"not UTF-8 text (byte 0x{content[offset]:02x})"
    return Diagnostic("EOP102", message, where, line, hint="save the file as UTF-8")

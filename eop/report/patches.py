"""A patch as it is read: file by file, its lines marked and their code coloured."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from eop.report.code_colours import coloured

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_LINES = 2000
_LONGEST_LINE = 10_000
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_HEADER = re.compile(r"diff --git a/(.*) b/(.*)")
_KINDS = {"+": "add", "-": "del"}


@dataclass
class PatchedFile:
    """What a patch does to one file; ``body`` are its lines, marked, safe to show."""

    name: str
    added: int = 0
    removed: int = 0
    lines: list[Markup] = field(default_factory=list)

    @property
    def body(self) -> Markup:
        """All lines."""
        return Markup("").join(self.lines)


@dataclass(frozen=True)
class Patch:
    """A patch: its files, and how many lines more there are than are shown."""

    files: tuple[PatchedFile, ...]
    left_out: int

    @property
    def added(self) -> int:
        """Lines that it adds, among those shown."""
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        """Lines that it removes, among those shown."""
        return sum(file.removed for file in self.files)


@lru_cache(maxsize=4096)
def read_patch(text: str) -> Patch:
    """A unified diff of git. Whatever the text is, it is shown as text."""
    lines = text.splitlines()
    files = list(_files(lines[:_MOST_LINES]))
    return Patch(tuple(files), max(0, len(lines) - _MOST_LINES))


def _files(lines: list[str]) -> Iterator[PatchedFile]:
    current: PatchedFile | None = None
    at = 0
    while at < len(lines):
        header = _HEADER.match(lines[at])
        if header or current is None:
            if current is not None:
                yield current
            current = PatchedFile(header[2] if header else "")
        hunk = _HUNK.match(lines[at])
        current.lines.append(_row("at" if hunk else "head", escape(_cut(lines[at]))))
        at += 1
        if hunk:
            old, new = (1 if count is None else int(count) for count in hunk.groups())
            code = _of_hunk(lines[at:], old, new)
            _add(current, code)
            at += len(code)
    if current is not None:
        yield current


def _of_hunk(lines: list[str], old: int, new: int) -> list[str]:
    """The lines that belong to a hunk of so many lines on either side, whatever they look like."""
    for index, line in enumerate(lines):
        if old <= 0 and new <= 0 and line[:1] != "\\":
            return lines[:index]
        old -= line[:1] not in ("+", "\\")
        new -= line[:1] not in ("-", "\\")
    return lines


def _add(file: PatchedFile, lines: list[str]) -> None:
    """Add the lines of a hunk. Its two sides are read each as one text: a string has many lines."""
    lines = [_cut(line) for line in lines]
    sides = {
        mark: iter(coloured(file.name, [line[1:] for line in lines if line[:1] != other]))
        for mark, other in (("-", "+"), ("+", "-"))
    }
    for line in lines:
        mark = line[:1]
        # A line of both sides is taken from either, and shown as it is now.
        shown = [next(side) for own, side in sides.items() if mark == own or mark not in _KINDS]
        file.added += mark == "+"
        file.removed += mark == "-"
        file.lines.append(_row(_KINDS.get(mark, "same"), escape(mark) + shown[-1]))


def _row(kind: str, content: Markup) -> Markup:
    return Markup(f'<span class="{kind}">{content}</span>')


def _cut(line: str) -> str:
    rest = len(line) - _LONGEST_LINE
    return line if rest <= 0 else f"{line[:_LONGEST_LINE]} \N{HORIZONTAL ELLIPSIS} {rest} more"

"""A patch as it is read: file by file, its lines marked and their code coloured."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

from markupsafe import Markup, escape
from pygments import lex
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Literal, Name, Number, String
from pygments.util import ClassNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pygments.lexer import Lexer
    from pygments.token import _TokenType

_MOST_LINES = 2000
# A line of a megabyte is no code: it is shown, and not coloured.
_LONGEST_CODE = 1000
_LONGEST_LINE = 10_000
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_HEADER = re.compile(r"diff --git a/(.*) b/(.*)")
# Classes of the style sheet, the first that fits.
_COLOURS: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "c"),
    (Keyword, "k"),
    (String, "s"),
    (Number, "n"),
    (Literal, "s"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "f"),
)


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
    lexer: Lexer = TextLexer()
    old = new = 0  # lines of the hunk that are still to come, of either side
    for line in lines:
        header = _HEADER.match(line) if not (old or new) else None
        if header or current is None:
            if current is not None:
                yield current
            current = PatchedFile(header[2] if header else "")
            lexer, old, new = _lexer(current.name), 0, 0
        if old or new:
            old, new = _code(current, lexer, line, old, new)
            continue
        hunk = _HUNK.match(line)
        if hunk:
            old, new = (1 if count is None else int(count) for count in hunk.groups())
        current.lines.append(_row("at" if hunk else "head", escape(_cut(line))))
    if current is not None:
        yield current


def _code(file: PatchedFile, lexer: Lexer, line: str, old: int, new: int) -> tuple[int, int]:
    """Add a line of a hunk; what is left of the hunk after it."""
    mark, code = line[:1], line[1:]
    if mark == "+":
        file.added += 1
        new = max(0, new - 1)
    elif mark == "-":
        file.removed += 1
        old = max(0, old - 1)
    elif mark != "\\":
        old, new = max(0, old - 1), max(0, new - 1)
    kind = {"+": "add", "-": "del"}.get(mark, "same")
    file.lines.append(_row(kind, escape(mark) + _coloured(lexer, code)))
    return old, new


def _row(kind: str, content: Markup) -> Markup:
    return Markup('<span class="{}">{}</span>').format(kind, content)


def _coloured(lexer: Lexer, code: str) -> Markup:
    if len(code) > _LONGEST_CODE:
        return escape(_cut(code))
    tokens = ((_colour(token), text.rstrip("\n")) for token, text in lex(code, lexer))
    parts = Markup("")
    for name, run in groupby(tokens, key=lambda token: token[0]):
        shown = escape("".join(text for _, text in run))
        parts += Markup('<i class="{}">{}</i>').format(name, shown) if name else shown
    return parts


def _colour(token: _TokenType) -> str | None:
    return next((name for kind, name in _COLOURS if token[: len(kind)] == kind), None)


def _cut(line: str) -> str:
    rest = len(line) - _LONGEST_LINE
    return line if rest <= 0 else f"{line[:_LONGEST_LINE]} \N{HORIZONTAL ELLIPSIS} {rest} more"


def _lexer(name: str) -> Lexer:
    try:
        return get_lexer_for_filename(name, stripnl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False)

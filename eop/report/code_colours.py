"""Lines of code as markup, in the colours of the style sheet. Whatever they hold stays text."""

from __future__ import annotations

from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from markupsafe import Markup, escape
from pygments import lex
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Literal, Name, Number, String
from pygments.util import ClassNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pygments.lexer import Lexer
    from pygments.token import _TokenType

# A line of a megabyte is no code: it is shown, and not coloured.
_LONGEST = 1000
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


def coloured(name: str, lines: Sequence[str]) -> list[Markup]:
    """Consecutive lines of the file ``name``, read as one text; none of them holds a line break."""
    plain = [escape(line) for line in lines]
    if any(len(line) > _LONGEST for line in lines):
        return plain
    rows: list[list[tuple[str | None, str]]] = [[]]
    for token, text in lex("\n".join(lines), _lexer(name)):
        for index, part in enumerate(text.split("\n")):
            if index:
                rows.append([])
            if part:
                rows[-1].append((_colour(token), part))
    # A lexer may drop what it takes for no text, such as a mark of byte order.
    read = ["".join(part for _, part in row) for row in rows[: len(lines)]]
    if read != list(lines):
        return plain
    return [Markup("").join(_spans(row)) for row in rows[: len(lines)]]


def _spans(row: list[tuple[str | None, str]]) -> Iterator[Markup]:
    for name, run in groupby(row, key=lambda part: part[0]):
        shown = escape("".join(text for _, text in run))
        yield Markup(f'<i class="{name}">{shown}</i>') if name else shown


@cache
def _colour(token: _TokenType) -> str | None:
    return next((name for kind, name in _COLOURS if token[: len(kind)] == kind), None)


@cache
def _lexer(name: str) -> Lexer:
    try:
        return get_lexer_for_filename(name, stripnl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False)

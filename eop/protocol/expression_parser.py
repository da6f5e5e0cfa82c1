"""From the text of an expression to its tree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from eop.protocol.expressions import (
    COMPARISONS,
    Binary,
    Literal,
    Member,
    Name,
    Place,
    Unary,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from eop.protocol.expressions import Expression

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[0-9]+(?:\.[0-9]+)?(?![\w.]))
      | (?P<text>'[^']*'|"[^"]*")
      | (?P<word>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?![\w.]))
      | (?P<sign>==|!=|<=|>=|[-+*<>()\[\],])
    )""",
    re.VERBOSE | re.ASCII,
)
_LONGEST = 500
_DEEPEST = 30
_MOST_DIGITS = 18
_SIGNS_MEANT = {
    "=": "to compare, write '=='",
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not'",
    "/": "there is no division",
    "%": "there is no remainder",
    "'": "close the quotation",
    '"': "close the quotation",
}


class ExpressionError(ValueError):
    """What cannot be read, where (characters from 0), and what to write instead."""

    def __init__(self, message: str, place: Place, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.hint = hint


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    place: Place


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """The tree of ``text``; ``ExpressionError`` when it is not an expression."""
    if len(text) > _LONGEST:
        place = Place(_LONGEST, len(text))
        raise ExpressionError(f"more than {_LONGEST} characters", place, "split the phase")
    return _Parser(_tokens(text)).whole()


def _tokens(text: str) -> list[_Token]:
    tokens, position = [], 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _stray(text, len(text) - len(text[position:].lstrip()))
        kind = str(match.lastgroup)
        place = Place(match.start(kind), match.end(kind))
        tokens.append(_Token(kind, match[kind], place))
        position = match.end()
    end = len(text.rstrip())
    return [*tokens, _Token("end", "", Place(max(end - 1, 0), max(end, 1)))]


def _stray(text: str, at: int) -> ExpressionError:
    found = re.compile(r"[\w.]+|.", re.DOTALL).match(text, at)
    shown = found[0] if found else ""
    hint = _SIGNS_MEANT.get(shown, "known signs: == != < <= > >= + - * ( ) [ ]")
    if len(shown) > 1:
        hint = "write a name, artifact.field, or a number such as 3 or 0.5"
    return ExpressionError(f"'{shown}' has no meaning here", Place(at, at + len(shown)), hint)


class _Parser:
    """One method a level of precedence, loosest first: or, and, not, comparison, sum, product."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Expression:
        tree = self._or()
        if self._next.kind != "end":
            hint = "compare two things at a time" if self._next.text in COMPARISONS else None
            raise self._unexpected("an operator or the end", hint)
        return tree

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *texts: str) -> _Token | None:
        token = self._next
        if token.kind not in ("sign", "word") or token.text not in texts:
            return None
        self._at += 1
        return token

    def _expect(self, text: str) -> _Token:
        token = self._take(text)
        if token is None:
            raise self._unexpected(f"'{text}'")
        return token

    def _unexpected(self, expected: str, hint: str | None = None) -> ExpressionError:
        token = self._next
        found = f"'{token.text}'" if token.text else "the end"
        return ExpressionError(f"expected {expected}, found {found}", token.place, hint)

    def _or(self) -> Expression:
        tree = self._and()
        while self._take("or"):
            tree = _binary("or", tree, self._and())
        return tree

    def _and(self) -> Expression:
        tree = self._not()
        while self._take("and"):
            tree = _binary("and", tree, self._not())
        return tree

    def _not(self) -> Expression:
        word = self._take("not")
        if word is None:
            return self._comparison()
        operand = self._deeper(self._not)
        return Unary("not", operand, Place(word.place.start, operand.place.end))

    def _comparison(self) -> Expression:
        tree = self._sum()
        if self._take("in"):
            return self._member(tree)
        sign = self._take(*COMPARISONS)
        return _binary(sign.text, tree, self._sum()) if sign else tree

    def _member(self, operand: Expression) -> Expression:
        self._expect("[")
        options = [self._literal()]
        while self._take(","):
            options.append(self._literal())
        end = self._expect("]").place.end
        return Member(operand, tuple(options), Place(operand.place.start, end))

    def _sum(self) -> Expression:
        tree = self._product()
        while sign := self._take("+", "-"):
            tree = _binary(sign.text, tree, self._product())
        return tree

    def _product(self) -> Expression:
        tree = self._signed()
        while self._take("*"):
            tree = _binary("*", tree, self._signed())
        return tree

    def _signed(self) -> Expression:
        sign = self._take("-")
        if sign is None:
            return self._operand()
        operand = self._deeper(self._signed)
        return Unary("-", operand, Place(sign.place.start, operand.place.end))

    def _operand(self) -> Expression:
        if self._take("("):
            tree = self._deeper(self._or)
            self._expect(")")
            return tree
        token = self._next
        if token.kind == "word" and token.text not in ("true", "false"):
            return self._name()
        if token.kind in ("number", "text", "word"):
            return self._literal()
        raise self._unexpected("a value")

    def _name(self) -> Expression:
        word = self._next
        if word.text in ("and", "or", "not", "in"):
            raise self._unexpected("a value")
        self._at += 1
        if not self._take("("):
            return Name(word.text, place=word.place)
        if word.text != "len":
            hint = "the only function of an expression is len(...)"
            raise ExpressionError(f"no function is named '{word.text}'", word.place, hint)
        path = self._next
        if path.kind != "word":
            raise self._unexpected("a name")
        self._at += 1
        self._expect(")")
        return Name(path.text, length=True, place=path.place)

    def _literal(self) -> Literal:
        token = self._next
        minus = self._take("-")
        if minus is not None:
            token = self._next
        self._at += 1
        place = Place((minus or token).place.start, token.place.end)
        if token.kind == "number":
            value = _number(token)
            return Literal(-value if minus else value, place)
        if token.kind == "text" and not minus:
            return Literal(token.text[1:-1], place)
        if token.text in ("true", "false") and not minus:
            return Literal(token.text == "true", place)
        self._at -= 1
        raise self._unexpected("a number, a text in quotes, true or false")

    def _deeper(self, read: Callable[[], Expression]) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ExpressionError("nested too deeply", self._next.place, "split the phase")
        tree = read()
        self._depth -= 1
        return tree


def _binary(sign: str, left: Expression, right: Expression) -> Binary:
    return Binary(sign, left, right, Place(left.place.start, right.place.end))


def _number(token: _Token) -> int | float:
    digits = token.text
    if len(digits.replace(".", "")) > _MOST_DIGITS:
        raise ExpressionError(f"more than {_MOST_DIGITS} digits", token.place)
    return float(digits) if "." in digits else int(digits)

"""Static types of expressions: every fault in one, with its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eop.core.errors import did_you_mean
from eop.protocol.expressions import (
    ARITHMETIC,
    LOGIC,
    Binary,
    Expression,
    Literal,
    Member,
    Name,
    Place,
    Unary,
)


@dataclass(frozen=True)
class Type:
    """``integer``, ``number``, ``text`` or ``boolean``; a text with ``words`` is one of them."""

    kind: str
    words: tuple[str, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether it can be reckoned with."""
        return self.kind in ("integer", "number")

    def matches(self, other: Type) -> bool:
        """Whether values of the two can be compared."""
        return self.kind == other.kind or (self.numeric and other.numeric)


@dataclass(frozen=True)
class Fault:
    """What is wrong at a place of an expression; ``code`` as in the table of diagnostics."""

    code: str
    message: str
    place: Place
    hint: str | None = None


# The type of a name, a fault that its place is still to be given to, or nothing where in doubt.
Scope = Callable[[Name], Type | Fault | None]
INTEGER, NUMBER, TEXT, BOOLEAN = Type("integer"), Type("number"), Type("text"), Type("boolean")


def infer(expression: Expression, scope: Scope) -> tuple[Type | None, list[Fault]]:
    """The type of an expression and its faults; ``None`` where the type cannot be told."""
    checker = _Checker(scope)
    kind = checker.of(expression)
    return kind, checker.faults


def decides(expression: Expression, scope: Scope) -> list[Fault]:
    """The faults of an expression that has to come to true or false."""
    checker = _Checker(scope)
    checker.demand(expression, "boolean", "a decision")
    return checker.faults


class _Checker:
    def __init__(self, scope: Scope) -> None:
        self.faults: list[Fault] = []
        self._scope = scope

    def of(self, tree: Expression) -> Type | None:
        """The type of ``tree``; ``None`` when a fault below it leaves that open."""
        if isinstance(tree, Literal):
            return _of_literal(tree)
        if isinstance(tree, Name):
            found = self._scope(tree)
            if isinstance(found, Fault):
                self.faults.append(found)
                return None
            return found
        if isinstance(tree, Unary):
            if tree.operator == "not":
                self.demand(tree.operand, "boolean", "'not'")
                return BOOLEAN
            return self.demand(tree.operand, "number", "'-'")
        if isinstance(tree, Member):
            return self._member(tree)
        return self._binary(tree)

    def demand(self, tree: Expression, kind: str, by: str) -> Type | None:
        """The type of ``tree``, which has to be of ``kind``."""
        found = self.of(tree)
        if found is None or found.kind == kind or (kind == "number" and found.numeric):
            return found
        hint = "compare it with something" if kind == "boolean" else None
        self._wrong(f"{by} needs a {kind}, this is {_shown(found)}", tree.place, hint)
        return None

    def _wrong(self, message: str, place: Place, hint: str | None = None) -> None:
        self.faults.append(Fault("EOP311", message, place, hint))

    def _binary(self, tree: Binary) -> Type | None:
        by = f"'{tree.operator}'"
        if tree.operator in LOGIC:
            self.demand(tree.left, "boolean", by)
            self.demand(tree.right, "boolean", by)
            return BOOLEAN
        if tree.operator in ARITHMETIC:
            sides = self.demand(tree.left, "number", by), self.demand(tree.right, "number", by)
            if None in sides:
                return None
            return NUMBER if NUMBER in sides else INTEGER
        if tree.operator in ("==", "!="):
            self._comparable(tree)
        else:
            self.demand(tree.left, "number", by)
            self.demand(tree.right, "number", by)
        return BOOLEAN

    def _comparable(self, tree: Binary) -> None:
        left, right = self.of(tree.left), self.of(tree.right)
        if left is None or right is None:
            return
        if not left.matches(right):
            message = f"{_shown(left)} is never equal to {_shown(right)}"
            self._wrong(message, tree.place, "compare values of one type")
        self._word(tree.left, right)
        self._word(tree.right, left)

    def _member(self, tree: Member) -> Type:
        kind = self.of(tree.operand)
        for option in tree.options:
            own = _of_literal(option)
            if kind is not None and not own.matches(kind):
                message = f"{_shown(own)} is never equal to {_shown(kind)}"
                self._wrong(message, option.place, "list values of one type")
            elif kind is not None:
                self._word(option, kind)
        return BOOLEAN

    def _word(self, tree: Expression, other: Type) -> None:
        """A text that is compared with one of a few words must be one of them."""
        if not isinstance(tree, Literal) or not other.words or tree.value in other.words:
            return
        if isinstance(tree.value, str):
            hint = did_you_mean(tree.value, other.words) or f"known: {', '.join(other.words)}"
            message = f"it is never '{tree.value}'"
            self.faults.append(Fault("EOP302", message, tree.place, hint))


def _of_literal(literal: Literal) -> Type:
    kinds = {bool: BOOLEAN, int: INTEGER, float: NUMBER, str: TEXT}
    return kinds[type(literal.value)]


def _shown(kind: Type) -> str:
    return f"an {kind.kind}" if kind.kind == "integer" else f"a {kind.kind}"

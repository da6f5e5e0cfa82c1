"""Expressions: what ``when``, ``while``, ``until`` and ``goto`` decide by, as trees and values.

The language has literals, names, comparisons, ``and``, ``or``, ``not``, ``+ - *``, ``in [...]``
and ``len(...)``; nothing else can be written, so nothing else can be reached.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Value = bool | int | float | str
Number = int | float
V = TypeVar("V")

# Larger numbers are not exact on every machine that may read a run.
LARGEST = 10**18
LONGEST_TEXT = 1000

TYPES: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {"integer": (int,), "number": (int, float), "text": (str,), "boolean": (bool,)}
)
ITERATION = "iteration"
FRUITLESS = "iterations_without_promotion"
BRANCHES = "branches"
# An iteration promoted something when these two differ.
PROMOTED_FACTS = ("decision.champion", "decision.parent")
BUILT_INS = (ITERATION, FRUITLESS, BRANCHES)
WORDS = ("and", "or", "not", "in", "true", "false", "len")

_ARITHMETIC: Mapping[str, Callable[[Number, Number], Number]] = MappingProxyType(
    {"+": operator.add, "-": operator.sub, "*": operator.mul}
)
_COMPARISONS: Mapping[str, Callable[[Value, Value], bool]] = MappingProxyType(
    {
        "==": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
)
ARITHMETIC, COMPARISONS, LOGIC = tuple(_ARITHMETIC), tuple(_COMPARISONS), ("and", "or")


@dataclass(frozen=True)
class Place:
    """A stretch of an expression's text: characters ``start`` to ``end``, from 0."""

    start: int
    end: int


_NOWHERE = Place(0, 0)


@dataclass(frozen=True)
class Literal:
    """A value as written."""

    value: Value
    place: Place = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Name:
    """A variable, a built-in name, or ``artifact.field``; with ``length``, how long that is."""

    path: str
    length: bool = False
    place: Place = field(default=_NOWHERE, compare=False)

    @property
    def term(self) -> str:
        """Under which its value is known: ``preflight.passed``, ``len(proposals)``."""
        return f"len({self.path})" if self.length else self.path


@dataclass(frozen=True)
class Unary:
    """``not`` or ``-`` before an operand."""

    operator: str
    operand: Expression
    place: Place = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Binary:
    """Two operands with an operator of logic, comparison or arithmetic between them."""

    operator: str
    left: Expression
    right: Expression
    place: Place = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Member:
    """Whether the operand is one of some literals."""

    operand: Expression
    options: tuple[Literal, ...]
    place: Place = field(default=_NOWHERE, compare=False)


Expression = Literal | Name | Unary | Binary | Member


@dataclass(frozen=True)
class Unknown:
    """What an expression has instead of a value; ``why`` is a readable reason."""

    why: str


def fields_of(term: str) -> list[str]:
    """The words of the term of a fact: ``['proposals']`` for ``len(proposals)``."""
    return term.removeprefix("len(").removesuffix(")").split(".")


def names(expression: Expression) -> Iterator[Name]:
    """Every name in an expression, as often as it stands there."""
    if isinstance(expression, Name):
        yield expression
    elif isinstance(expression, Unary | Member):
        yield from names(expression.operand)
    elif isinstance(expression, Binary):
        yield from names(expression.left)
        yield from names(expression.right)


def demands(expression: Expression, term: str) -> bool:
    """Whether an expression is true only where the boolean ``term`` is."""
    if isinstance(expression, Binary) and expression.operator == "and":
        return demands(expression.left, term) or demands(expression.right, term)
    return isinstance(expression, Name) and expression.term == term


def evaluate(expression: Expression, values: Mapping[str, Value]) -> Value | Unknown:
    """The value of a well-typed expression; ``values`` holds what is known, by term.

    Total: one unknown term makes the whole unknown, as does a number beyond ``LARGEST``.
    """
    missing = [name.term for name in names(expression) if name.term not in values]
    if missing:
        return Unknown(f"'{missing[0]}' is not known")
    try:
        return _value(expression, values)
    except OverflowError:
        return Unknown("a number in it is too large")


def is_of(value: object, kind: str) -> bool:
    """Whether ``value`` is of the type ``kind``, and small enough to be kept in a run's trace."""
    if not isinstance(value, TYPES[kind]) or isinstance(value, bool) != (kind == "boolean"):
        return False
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    return isinstance(value, bool) or _in_range(value)


def _in_range(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and abs(value) <= LARGEST


def _value(expression: Expression, values: Mapping[str, Value]) -> Value:
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Name):
        return values[expression.term]
    if isinstance(expression, Member):
        return _value(expression.operand, values) in [o.value for o in expression.options]
    if isinstance(expression, Unary):
        operand = _value(expression.operand, values)
        return not operand if expression.operator == "not" else -_number(operand)
    left, right = _value(expression.left, values), _value(expression.right, values)
    if expression.operator == "and":
        return bool(left and right)
    if expression.operator == "or":
        return bool(left or right)
    if expression.operator in _COMPARISONS:
        return _COMPARISONS[expression.operator](left, right)
    result = _ARITHMETIC[expression.operator](_number(left), _number(right))
    if not _in_range(result):
        raise OverflowError
    return result


def _number(value: Value) -> Number:
    assert not isinstance(value, str), "expressions are typed before they are evaluated"
    return value

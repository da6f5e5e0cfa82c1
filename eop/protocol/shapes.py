"""Typed readers of YAML nodes: each gives a value, or ``None`` after reporting why not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from eop.core.errors import did_you_mean
from eop.protocol.yaml_nodes import Listing, Mapping, Node, Scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Mapping as Table

    from eop.protocol.diagnostics import Report, Span

T = TypeVar("T")


@dataclass(frozen=True)
class Shape(Generic[T]):
    """How a value is read, and the JSON Schema of what may be written there.

    Called with a node and a report it gives the value, or ``None`` after reporting why not.
    """

    read: Callable[[Node, Report], T | None]
    schema: dict[str, Any]

    def __call__(self, node: Node, report: Report) -> T | None:
        """The value at ``node``."""
        return self.read(node, report)


def described(schema: dict[str, Any]) -> Callable[[Callable[[Node, Report], T | None]], Shape[T]]:
    """Make a reader a shape: ``schema`` says for editors what the reader takes."""
    return lambda read: Shape(read, schema)


# Two names must not meet in a file name: no branch prefix (p01_), no revision suffix (_r2).
STEP_NAME = re.compile(r"(?!p\d\d_)(?!.*_r\d+$)[a-z][a-z0-9_]*(?<!_)")
WORD = re.compile(r"[a-z][a-z0-9_]*(?<!_)")
SLUG = re.compile(r"[a-z][a-z0-9-]*(?<!-)")
VERSION = re.compile(r"\d+\.\d+\.\d+")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DURATION = re.compile(r"([1-9][0-9]{0,5})([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_MEMORY = re.compile(r"([1-9][0-9]{0,5})(MB|GB)")
_MEGABYTES = {"MB": 1, "GB": 1000}
_NAME_LIMIT = 60
_MOST_MICRO_USD = 10**12

# Markers of the language that this version does not hold yet; they are refused, not ignored.
_LATER = frozenset({"recall"})


@dataclass(frozen=True)
class Field:
    """A key of a mapping: how its value is read, and whether it must be there."""

    shape: Shape[Any]
    required: bool = False


def _matching(pattern: re.Pattern[str]) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^(?:{pattern.pattern})$", "maxLength": _NAME_LIMIT}


def kind_of(node: Node) -> str:
    """What a node is, in words for messages."""
    if isinstance(node, Listing):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    if node.value is None:
        return "nothing"
    if isinstance(node.value, bool):
        return f"the boolean '{str(node.value).lower()}'"
    return f"the {'text' if isinstance(node.value, str) else 'number'} '{node.value}'"


def mismatch(node: Node, expected: str, report: Report, hint: str | None = None) -> None:
    """Report that ``node`` is not what was expected."""
    report.error("EOP301", f"expected {expected}, found {kind_of(node)}", node.span, hint)


@described({"type": "string"})
def text(node: Node, report: Report) -> str | None:
    """A text."""
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return node.value
    quoted = isinstance(node, Scalar) and node.value is not None
    mismatch(node, "a text", report, "put it in quotes" if quoted else None)
    return None


@described({"type": "boolean"})
def boolean(node: Node, report: Report) -> bool | None:
    """``true`` or ``false``."""
    if isinstance(node, Scalar) and isinstance(node.value, bool):
        return node.value
    mismatch(node, "true or false", report)
    return None


def integer(low: int, high: int) -> Shape[int]:
    """A whole number between ``low`` and ``high``, both included."""

    @described({"type": "integer", "minimum": low, "maximum": high})
    def read(node: Node, report: Report) -> int | None:
        value = node.value if isinstance(node, Scalar) else None
        if not isinstance(value, int) or isinstance(value, bool):
            mismatch(node, "a whole number", report)
            return None
        if not low <= value <= high:
            report.error("EOP303", f"{value} is not between {low} and {high}", node.span)
            return None
        return value

    return read


def name(pattern: re.Pattern[str], what: str, rule: str) -> Shape[str]:
    """A name that matches ``pattern`` whole; ``rule`` says in words what is allowed."""

    @described(_matching(pattern))
    def read(node: Node, report: Report) -> str | None:
        value = text(node, report)
        if value is None:
            return None
        if pattern.fullmatch(value) and len(value) <= _NAME_LIMIT:
            return value
        if pattern.fullmatch(value):
            message = f"a {what} of {len(value)} characters"
            report.error("EOP304", message, node.span, f"at most {_NAME_LIMIT}")
        else:
            report.error("EOP304", f"'{value}' is not a {what}", node.span, rule)
        return None

    return read


def choice(words: Iterable[str], what: str, code: str = "EOP302") -> Shape[str]:
    """One of a few words."""
    known = tuple(words)

    @described({"enum": list(known)})
    def read(node: Node, report: Report) -> str | None:
        value = text(node, report)
        if value is None or value in known:
            return value
        hint = did_you_mean(value, known) or f"known: {', '.join(known)}"
        report.error(code, f"unknown {what} '{value}'", node.span, hint)
        return None

    return read


@described({"type": "string", "pattern": f"^{_DURATION.pattern}$"})
def duration(node: Node, report: Report) -> int | None:
    """A duration in seconds, written as ``30s``, ``20m`` or ``8h``."""
    value = node.value if isinstance(node, Scalar) else None
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match:
        return int(match[1]) * _SECONDS[match[2]]
    hint = "write 30s, 20m or 8h: a number from 1 to 999999 and one unit"
    report.error("EOP305", f"{kind_of(node)} is not a duration", node.span, hint)
    return None


@described({"type": "string", "pattern": f"^{_MEMORY.pattern}$"})
def memory(node: Node, report: Report) -> int | None:
    """An amount of main memory in megabytes, written as ``512MB`` or ``16GB``."""
    value = node.value if isinstance(node, Scalar) else None
    match = _MEMORY.fullmatch(value) if isinstance(value, str) else None
    if match:
        return int(match[1]) * _MEGABYTES[match[2]]
    message = f"{kind_of(node)} is not an amount of memory"
    report.error("EOP312", message, node.span, "write 512MB or 16GB")
    return None


@described({"type": "number", "minimum": 0.000001, "maximum": _MOST_MICRO_USD // 1_000_000})
def dollars(node: Node, report: Report) -> int | None:
    """An amount in US dollars with at most six decimals, in millionths of a dollar."""
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        mismatch(node, "an amount in dollars", report, "write usd: 12.50")
        return None
    # The shortest text of a float is what was written: no binary fraction gets into the sum.
    micro = Decimal(repr(value)) * 1_000_000
    if not 1 <= micro <= _MOST_MICRO_USD or micro != micro.to_integral_value():
        message = f"{value} is not between 0.000001 and 1000000, with at most six decimals"
        report.error("EOP303", message, node.span)
        return None
    return int(micro)


@described(_matching(_FILE))
def file_name(node: Node, report: Report) -> str | None:
    """A plain file name, without folders."""
    value = text(node, report)
    if value is None or (_FILE.fullmatch(value) and len(value) <= _NAME_LIMIT):
        return value
    hint = f"letters, digits, '.', '_' and '-', {_NAME_LIMIT} at most; no folders, no leading dot"
    report.error("EOP307", f"'{value}' is not a file name", node.span, hint)
    return None


def listing(item: Shape[Any], *, unique: bool = True) -> Shape[tuple[Any, ...]]:
    """A list with at least one item; the items that are valid, as a tuple."""

    @described({"type": "array", "minItems": 1, "uniqueItems": unique, "items": item.schema})
    def read(node: Node, report: Report) -> tuple[Any, ...] | None:
        if not isinstance(node, Listing):
            shown = node.value if isinstance(node, Scalar) and node.value is not None else "..."
            mismatch(node, "a list", report, f"write [{shown}]")
            return None
        if not node.items:
            report.error("EOP309", "the list is empty", node.span, "name at least one item")
        values: list[Any] = []
        for entry in node.items:
            value = item(entry, report)
            if unique and value is not None and value in values:
                report.error("EOP310", f"'{value}' is listed twice", entry.span, "keep one")
            elif value is not None:
                values.append(value)
        return tuple(values)

    return read


def record(fields: Table[str, Field], *, owner: str) -> Shape[dict[str, Any]]:
    """A mapping with these keys and no other; the values that are valid, by key."""

    @described(fields_schema(fields))
    def read(node: Node, report: Report) -> dict[str, Any] | None:
        if not isinstance(node, Mapping):
            first = next(iter(fields))
            mismatch(node, "a mapping", report, f"write {{{first}: ...}}")
            return None
        return read_fields(node, fields, owner, report, node.span)

    return read


def table(key: Shape[str], value: Shape[Any]) -> Shape[dict[str, Any]]:
    """A mapping with free names; the entries whose name and value are valid, in order."""

    @described(
        {
            "type": "object",
            "minProperties": 1,
            "propertyNames": key.schema,
            "additionalProperties": value.schema,
        }
    )
    def read(node: Node, report: Report) -> dict[str, Any] | None:
        if not isinstance(node, Mapping):
            mismatch(node, "a mapping", report, "write {name: ...}")
            return None
        if not node.values:
            report.error("EOP309", "the mapping is empty", node.span, "name at least one entry")
        found = {}
        for word, entry in node.values.items():
            checked = key(Scalar(word, node.keys[word]), report)
            content = value(entry, report)
            if checked is not None and content is not None:
                found[word] = content
        return found

    return read


def fields_schema(fields: Table[str, Field]) -> dict[str, Any]:
    """The JSON Schema of a mapping with these keys and no other."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [key for key, field in fields.items() if field.required],
        "properties": {key: field.shape.schema for key, field in fields.items()},
    }


def read_fields(
    node: Mapping, fields: Table[str, Field], owner: str, report: Report, opening: Span
) -> dict[str, Any]:
    """The valid values of a mapping's known keys; unknown and missing keys are reported.

    ``opening`` is where the mapping says what it is: missing keys are reported there.
    """
    for key, span in node.keys.items():
        if key not in fields:
            message = f"unknown key '{key}' in {owner}"
            report.error("EOP112", message, span, _key_hint(key, fields))
    for key, field in fields.items():
        if field.required and key not in node.values:
            message = f"{owner} needs the key '{key}'"
            report.error("EOP113", message, opening, f"add '{key}: ...'")
    values = {}
    for key, child in node.values.items():
        if key in fields:
            value = fields[key].shape(child, report)
            if value is not None:
                values[key] = value
    return values


def _key_hint(key: str, fields: Table[str, Field]) -> str:
    if key in _LATER:
        return "not part of language version 1; remove it"
    return did_you_mean(key, fields) or f"known: {', '.join(fields)}"

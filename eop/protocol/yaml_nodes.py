"""YAML as a tree in which every key and value knows its place in the file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from eop.protocol.diagnostics import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eop.protocol.diagnostics import Report

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[-+]?[0-9]{1,300}\.[0-9]{1,300}")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True)
class Scalar:
    """A single value: text, integer, number, boolean or ``None``."""

    value: str | int | float | bool | None
    span: Span


@dataclass(frozen=True)
class Listing:
    """A list of nodes."""

    items: tuple[Node, ...]
    span: Span


@dataclass(frozen=True)
class Mapping:
    """Keys, each with the place of the key itself, and their values, in the order written."""

    values: dict[str, Node]
    keys: dict[str, Span]
    span: Span

    def key(self, name: str) -> Span:
        """Where the key ``name`` stands; the whole mapping when it is not written."""
        return self.keys.get(name, self.span)

    def at(self, *path: str | int) -> Span:
        """Where the value at ``path`` stands, or the nearest place that exists on the way."""
        node: Node = self
        for step in path:
            child = _child(node, step)
            if child is None:
                break
            node = child
        return node.span


Node = Scalar | Listing | Mapping


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(node, Mapping) and isinstance(step, str):
        return node.values.get(step)
    if isinstance(node, Listing) and isinstance(step, int) and step < len(node.items):
        return node.items[step]
    return None


def parse_yaml(lines: Sequence[str], first_line: int, report: Report) -> Node | None:
    """The YAML in ``lines``, the first of which is line ``first_line`` of the file.

    ``None`` when it is empty or malformed; the latter is reported. Keys given twice are reported
    and the first one stands.
    """
    if _tabs(lines, first_line, report):
        return None
    reader = _Reader(lines, first_line, report)
    try:
        node = reader.document()
    except YAMLError as error:
        reader.malformed(error)
        return None
    except RecursionError:
        report.error("EOP108", "malformed YAML: nested too deeply", Span(first_line))
        return None
    return None if reader.refused else node


def _tabs(lines: Sequence[str], first_line: int, report: Report) -> bool:
    before = report.count
    for number, line in enumerate(lines, start=first_line):
        indent = line[: len(line) - len(line.lstrip())]
        if "\t" in indent and line.strip():
            span = Span(number, indent.index("\t") + 1)
            report.error("EOP107", "a tab in the indentation", span, "indent with spaces")
    return report.count > before


class _Reader:
    """Builds nodes from the parser's events, with absolute positions.

    ``refused`` is set once an anchor, an alias or a tag was met: they hide what a reader of the
    document would see.
    """

    def __init__(self, lines: Sequence[str], first_line: int, report: Report) -> None:
        self.report = report
        self.refused = False
        self._lines = lines
        self._first = first_line
        self._events = YAML(typ="safe", pure=True).parse("\n".join(lines) + "\n")

    def document(self) -> Node | None:
        """The one document of the text; ``None`` when there is none."""
        root: Node | None = None
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    message = "malformed YAML: a second document begins here"
                    span = self._span(event.start_mark, event.end_mark)
                    self.report.error("EOP108", message, span, "delete the line '---'")
                    return root
                root = self._node(next(self._events))
        return root

    def _node(self, event: Any) -> Node:
        self._refuse(event)
        if isinstance(event, MappingStartEvent):
            return self._mapping(event)
        if isinstance(event, SequenceStartEvent):
            items = []
            while not isinstance(item := next(self._events), SequenceEndEvent):
                items.append(self._node(item))
            return Listing(tuple(items), self._span(event.start_mark, item.end_mark))
        value = _value(event) if isinstance(event, ScalarEvent) else None
        return Scalar(value, self._span(event.start_mark, event.end_mark))

    def _mapping(self, event: Any) -> Mapping:
        values: dict[str, Node] = {}
        keys: dict[str, Span] = {}
        while not isinstance(key_event := next(self._events), MappingEndEvent):
            key_node = self._node(key_event)
            value_event = next(self._events)
            value = self._node(value_event)
            if _is_unwritten(value_event):
                # The parser places what is not written at whatever comes next.
                value = Scalar(None, key_node.span)
            key = key_event.value if isinstance(key_event, ScalarEvent) else None
            if not isinstance(key, str):
                self.report.error("EOP301", "a key must be a word", key_node.span)
            elif key in values:
                hint = f"the first one is on line {keys[key].line}; keep one of them"
                self.report.error("EOP109", f"the key '{key}' is given twice", key_node.span, hint)
            else:
                values[key], keys[key] = value, key_node.span
        return Mapping(values, keys, self._span(event.start_mark, key_event.end_mark))

    def _refuse(self, event: Any) -> None:
        alias = isinstance(event, AliasEvent)
        tagged = not alias and event.tag is not None
        if not (alias or tagged or event.anchor):
            return
        self.refused = True
        what = "an alias" if alias else "a tag" if tagged else "an anchor"
        span = self._span(event.start_mark, event.end_mark)
        rest = self._lines[event.start_mark.line][event.start_mark.column :]
        word = Span(span.line, span.column, len(rest.split(maxsplit=1)[0]))
        self.report.error("EOP110", f"{what} is not allowed here", word, "write the value itself")

    def _span(self, start: Any, end: Any) -> Span:
        line = self._lines[start.line] if start.line < len(self._lines) else ""
        stop = end.column if end.line == start.line else len(line.rstrip())
        return Span(self._first + start.line, start.column + 1, max(stop - start.column, 1))

    def malformed(self, error: YAMLError) -> None:
        """Report a syntax error: an unclosed bracket where it opens, all else where it shows."""
        marked = error if isinstance(error, MarkedYAMLError) else MarkedYAMLError()
        mark: Any = marked.problem_mark or marked.context_mark
        if "a flow" in (marked.context or ""):
            mark = marked.context_mark
        place = Span(self._first) if mark is None else self._span(mark, mark)
        said = [part for part in (marked.context, marked.problem) if part]
        reason = ", ".join(said) or "it cannot be read"
        hint = "a text that holds ': ' needs quotes" if "not allowed here" in reason else None
        self.report.error("EOP108", f"malformed YAML: {reason}", place, hint)


def _is_unwritten(event: Any) -> bool:
    return isinstance(event, ScalarEvent) and event.style is None and not event.value


def _value(event: ScalarEvent) -> str | int | float | bool | None:
    text = str(event.value)
    if event.style is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text

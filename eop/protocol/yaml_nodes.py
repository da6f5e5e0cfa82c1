"""YAML as a tree in which every key and value knows its place in the file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

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
    text = "\n".join(lines) + "\n"
    reader = _Reader(lines, first_line, report)
    try:
        if _extras(text, reader):
            return None
        root = YAML(typ="safe", pure=True).compose(text)
        return None if root is None else reader.convert(root)
    except MarkedYAMLError as error:
        reader.malformed(error)
    except YAMLError as error:
        report.error("EOP108", f"malformed YAML: {error}".split("\n")[0], Span(first_line))
    except RecursionError:
        report.error("EOP108", "malformed YAML: nested too deeply", Span(first_line))
    return None


def _tabs(lines: Sequence[str], first_line: int, report: Report) -> bool:
    before = report.count
    for number, line in enumerate(lines, start=first_line):
        indent = line[: len(line) - len(line.lstrip())]
        if "\t" in indent and line.strip():
            span = Span(number, indent.index("\t") + 1)
            report.error("EOP107", "a tab in the indentation", span, "indent with spaces")
    return report.count > before


def _extras(text: str, reader: _Reader) -> bool:
    """Report anchors, aliases and tags: they hide what a reader of the document would see."""
    found = False
    for event in YAML(typ="safe", pure=True).parse(text):
        alias = isinstance(event, AliasEvent)
        tagged = getattr(event, "ctag", None) is not None or getattr(event, "tag", None)
        if alias or tagged or getattr(event, "anchor", None):
            found = True
            what = "an alias" if alias else "a tag" if tagged else "an anchor"
            span = reader.span(event.start_mark, event.end_mark)
            reader.report.error("EOP110", f"{what} is not allowed here", span, "write the value")
    return found


class _Reader:
    """Turns composed YAML nodes into ours, with absolute positions."""

    def __init__(self, lines: Sequence[str], first_line: int, report: Report) -> None:
        self.report = report
        self._lines = lines
        self._first = first_line

    def span(self, start: Any, end: Any) -> Span:
        line = self._lines[start.line] if start.line < len(self._lines) else ""
        stop = end.column if end.line == start.line else len(line.rstrip())
        return Span(self._first + start.line, start.column + 1, max(stop - start.column, 1))

    def convert(self, node: Any) -> Node:
        span = self.span(node.start_mark, node.end_mark)
        if isinstance(node, MappingNode):
            return self._mapping(node, span)
        if isinstance(node, SequenceNode):
            return Listing(tuple(self.convert(item) for item in node.value), span)
        return Scalar(_value(node), span)

    def _mapping(self, node: MappingNode, span: Span) -> Mapping:
        values: dict[str, Node] = {}
        keys: dict[str, Span] = {}
        for key_node, value_node in node.value:
            where = self.span(key_node.start_mark, key_node.end_mark)
            key = key_node.value if isinstance(key_node, ScalarNode) else None
            if not isinstance(key, str):
                self.report.error("EOP301", "a key must be a word", where)
            elif key in values:
                hint = f"the first one is on line {keys[key].line}; keep one of them"
                self.report.error("EOP109", f"the key '{key}' is given twice", where, hint)
            else:
                values[key], keys[key] = self.convert(value_node), where
        return Mapping(values, keys, span)

    def malformed(self, error: MarkedYAMLError) -> None:
        mark: Any = error.problem_mark or error.context_mark
        at_end = mark is not None and mark.line >= len(self._lines)
        if at_end and error.context_mark is not None:
            mark = error.context_mark
        place = Span(self._first) if mark is None else self.span(mark, mark)
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        hint = "a text with ': ' or a leading special character needs quotes"
        self.report.error("EOP108", f"malformed YAML: {reason}", place, hint)


def _value(node: ScalarNode) -> str | int | float | bool | None:
    text = str(node.value)
    if node.style is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text

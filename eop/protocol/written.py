"""An expression as it stands in the file: its text, and the place of every character of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.protocol.diagnostics import Span
from eop.protocol.expression_parser import ExpressionError, parse
from eop.protocol.shapes import described, mismatch
from eop.protocol.yaml_nodes import Node, Scalar

if TYPE_CHECKING:
    from eop.protocol.diagnostics import Report
    from eop.protocol.expressions import Expression, Place

_ESCAPED = re.compile(r"\\(?:x..|u....|U........|.)|.")
_SINGLE = re.compile(r"''|.")


@dataclass(frozen=True)
class Written:
    """``columns`` has the column of each character of ``text`` and of what follows the last."""

    text: str
    line: int
    columns: tuple[int, ...]

    def span(self, place: Place) -> Span:
        """Where a stretch of the expression stands in the file."""
        last = len(self.columns) - 1
        start, end = (self.columns[min(at, last)] for at in (place.start, place.end))
        return Span(self.line, start, max(end - start, 1))


def written(node: Node, report: Report) -> Written | None:
    """The text of a scalar that stands on one line; ``None`` for anything else."""
    if not isinstance(node, Scalar) or node.value is None:
        return None
    raw = report.text(node.span)
    first = node.span.column
    if not isinstance(node.value, str):
        return Written(raw, node.span.line, tuple(range(first, first + len(raw) + 1)))
    if raw[:1] in ("'", '"') and raw[-1:] == raw[:1] and len(raw) > 1:
        pieces = (_SINGLE if raw[0] == "'" else _ESCAPED).finditer(raw, 1, len(raw) - 1)
        columns = [first + piece.start() for piece in pieces]
        columns.append(first + len(raw) - 1)
    else:
        columns = list(range(first, first + len(raw) + 1))
    whole = len(columns) == len(node.value) + 1
    return Written(node.value, node.span.line, tuple(columns)) if whole else None


@described({"type": ["string", "boolean"], "minLength": 1})
def expression(node: Node, report: Report) -> str | None:
    """The text of an expression that can be read; a fault of it is reported at its place."""
    found = written(node, report)
    if found is None:
        if isinstance(node, Scalar) and node.value is not None:
            message = "an expression stands on one line"
            report.error("EOP118", message, node.span, "write it in quotes, on one line")
        else:
            mismatch(node, "an expression", report, "write when: preflight.passed")
        return None
    try:
        parse(found.text)
    except ExpressionError as error:
        report.error("EOP118", error.message, found.span(error.place), error.hint)
        return None
    return found.text


def parsed(node: Node, report: Report) -> tuple[Written, Expression] | None:
    """An expression that was read before, with its places; ``None`` when it could not be read."""
    found = written(node, report)
    try:
        return None if found is None else (found, parse(found.text))
    except ExpressionError:
        return None

"""Diagnostics for programs: as data, and as annotations of GitHub's checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eop.protocol.diagnostics import Diagnostic

DIAGNOSTICS_SCHEMA = "diagnostics/1"


def as_data(found: Diagnostic) -> dict[str, Any]:
    """A diagnostic as ``config/schemas/diagnostics.schema.yaml`` describes it.

    ``span`` is ``None`` for a fault of the file as a whole; ``end_column`` is the column after
    the last character meant.
    """
    where = found.where
    span = None
    if where.line and where.column:
        end = where.column + found.width
        span = {"line": where.line, "column": where.column, "end_column": end}
    return {
        "code": found.code,
        "severity": "error",
        "message": found.message,
        "hint": found.hint,
        "path": where.path,
        "span": span,
        "source": found.source,
    }


def as_github(diagnostics: Sequence[Diagnostic]) -> str:
    """A workflow command ``::error file=...::message`` for each, on a line of its own."""
    return "\n".join(_annotation(found) for found in diagnostics)


def _annotation(found: Diagnostic) -> str:
    where = found.where
    properties: dict[str, Any] = {"file": where.path}
    if where.line and where.column:
        end = where.column + found.width
        properties |= {"line": where.line, "col": where.column, "endColumn": end}
    properties["title"] = found.code
    shown = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    hint = f"\nhint: {found.hint}" if found.hint else ""
    return f"::error {shown}::{_escaped(found.message + hint)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")

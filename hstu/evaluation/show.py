"""Results as tables for people; what is unknown is a dash, never 0."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def number(value: float | None, form: str = ".4f") -> str:
    """A number, or a dash for one that is unknown."""
    return "\N{EN DASH}" if value is None else format(value, form)


def interval(low: float | None, high: float | None, *, form: str = "+.4f") -> str:
    """``[low, high]``, or a dash."""
    if low is None or high is None:
        return number(None)
    return f"[{low:{form}}, {high:{form}}]"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table whose first column is text and whose others are numbers."""
    made = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        made.add_column(column, justify="right" if place else "left")
    for row in rows:
        made.add_row(*map(Text, row))  # an interval in brackets would be taken for markup
    return made


def show(*parts: Table | str) -> None:
    """Print tables and lines; under NO_COLOR without any code, not even bold."""
    console = Console(highlight=False, color_system=None if os.environ.get("NO_COLOR") else "auto")
    for part in parts:
        console.print(part, markup=False)


def show_json(value: Any) -> None:
    """Print plain data as JSON; NaN is refused."""
    click.echo(json.dumps(value, indent=2, sort_keys=True, allow_nan=False))

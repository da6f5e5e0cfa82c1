"""Tables that read well in a terminal and are Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Table(NamedTuple):
    """A title, a line on what was measured, names of columns and rows of cells."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Lines of equal width; numbers stand to the right."""
        cells = [list(self.columns), *map(list, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        right = [all(_is_number(row[at]) for row in self.rows) for at in range(len(widths))]
        rule = ["-" * (w - 1) + ":" if r else "-" * w for w, r in zip(widths, right, strict=True)]
        padded = [
            [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)]
            for row in cells
        ]
        lines = ["| " + " | ".join(row) + " |" for row in [padded[0], rule, *padded[1:]]]
        return "\n".join(lines)


def number(value: float) -> str:
    """Three significant digits, or all digits before the point: 0.0123, 1.23, 45,678."""
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit()

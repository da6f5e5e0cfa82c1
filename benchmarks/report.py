"""Where measured tables go: the terminal, a document, a JSON file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.child import Row
    from benchmarks.document import Document
    from benchmarks.table import Table


@dataclass(frozen=True)
class Report:
    """What one call of the benchmark has measured so far, and the facts that it is true for."""

    command: str
    machine: dict[str, str]
    document: Document | None
    measured: dict[str, list[Row]] = field(default_factory=dict)

    def show(self, name: str, table: Table) -> None:
        """Print a table and put it at its place in the document, under the command."""
        click.echo(f"## {table.title}\n\n{table.note}\n\n{table.text()}\n")
        if self.document is not None:
            block = f"`{self.command}`\n\n{self.facts}\n\n{table.note}\n\n{table.text()}"
            self.document.put(name, block)

    @property
    def facts(self) -> str:
        """The machine in a line."""
        return "; ".join(f"{name} {value}" for name, value in self.machine.items()) + "."

    def write_json(self, path: Path) -> None:
        """Write command, machine and all rows."""
        data: dict[str, Any] = {"command": self.command, "machine": self.machine}
        path.write_text(json.dumps({**data, "rows": self.measured}, indent=2) + "\n")
